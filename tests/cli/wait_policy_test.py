"""OpenMP's threads wait asleep in `qact`, unless the user says otherwise.

The runtime itself says what it read: it must have been set before the runtime was loaded.
"""

import os
import re
import subprocess
import sys
import unittest

PROGRAM = sys.argv.pop(1)
SETTINGS = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")


def environment(**chosen):
    kept = {name: value for name, value in os.environ.items() if name not in SETTINGS}
    return {**kept, **chosen}


def runtime_settings(**chosen):
    done = subprocess.run([PROGRAM, "--help"], capture_output=True, text=True, timeout=60,
                          env=environment(OMP_DISPLAY_ENV="VERBOSE", **chosen))
    assert done.returncode == 0, done.stderr
    return dict(re.findall(r"(\w+) = '(.*)'", done.stderr))


@unittest.skipUnless("GOMP_SPINCOUNT" in runtime_settings(), "another OpenMP runtime than GNU's")
class WaitPolicy(unittest.TestCase):
    def test_threads_sleep_at_once(self):
        self.assertEqual(runtime_settings()["GOMP_SPINCOUNT"], "0")

    def test_the_users_choice_wins(self):
        self.assertEqual(runtime_settings(GOMP_SPINCOUNT="123")["GOMP_SPINCOUNT"], "123")
        active = runtime_settings(OMP_WAIT_POLICY="active")
        self.assertEqual(active["OMP_WAIT_POLICY"], "ACTIVE")
        self.assertNotEqual(active["GOMP_SPINCOUNT"], "0")

    def test_arguments_and_exit_codes_pass_through(self):
        def outcome(**chosen):
            done = subprocess.run([PROGRAM, "predict", "no such run", ""], capture_output=True,
                                  text=True, timeout=60, env=environment(**chosen))
            return done.returncode, done.stdout, done.stderr

        self.assertEqual(outcome(), outcome(OMP_WAIT_POLICY="passive"))
        self.assertEqual(outcome()[0], 1)
        self.assertIn("no such run", outcome()[2])


if __name__ == "__main__":
    unittest.main()
