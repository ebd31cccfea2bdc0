"""What the benchmarks' scripts do beside timing."""
import importlib.util
import json
import os
import pathlib

SCRIPTS = pathlib.Path(__file__).parents[2] / "scripts"


def script(name):
    spec = importlib.util.spec_from_file_location(name, SCRIPTS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_rows_of_other_benchmarks_and_devices_stay(tmp_path):
    def row(what, device, peer="compiled", **more):
        return {"what": what, "device": device, "peer": peer, **more}

    path = tmp_path / "bench.json"
    others = [row("layer", "cuda"), row("layer", "cpu", "eager"),
              row("ties", "cpu", "without ties"), {"what": "distributed", "device": "cpu"}]
    path.write_text(json.dumps([row("layer", "cpu", qact_ms=1), *others]))
    script("bench_compiled").write(path, [row("layer", "cpu", qact_ms=2)])
    assert json.loads(path.read_text()) == [*others, row("layer", "cpu", qact_ms=2)]


def test_ranks_share_one_gpu(monkeypatch):
    bench = script("bench_distributed")
    for seen, one in ((None, "0"), ("2,3", "2"), ("GPU-aa,GPU-bb", "GPU-aa"), ("", "")):
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        if seen is not None:
            monkeypatch.setenv("CUDA_VISIBLE_DEVICES", seen)
        bench.see_one_gpu()
        assert os.environ["CUDA_VISIBLE_DEVICES"] == one
