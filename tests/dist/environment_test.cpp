#include "qact/dist/environment.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/base/message.h"

namespace qact::dist {
namespace {

using Variables = std::map<std::string, std::string>;

std::optional<Environment> read(const Variables& variables) {
  return read_environment([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

Variables sound() {
  return {{"RANK", "5"},
          {"WORLD_SIZE", "8"},
          {"LOCAL_RANK", "1"},
          {"MASTER_ADDR", "h"},
          {"MASTER_PORT", "29500"},
          {"LOCAL_WORLD_SIZE", "4"},
          {"TORCHELASTIC_RESTART_COUNT", "2"},
          {"TORCHELASTIC_USE_AGENT_STORE", "True"}};
}

TEST(Environment, IsThatOfTorchrun) {
  const Environment e = read(sound()).value();
  EXPECT_EQ(e.rank, 5);
  EXPECT_EQ(e.size, 8);
  EXPECT_EQ(e.local_rank, 1);
  EXPECT_EQ(e.local_size, 4);
  EXPECT_EQ(e.master_address, "h");
  EXPECT_EQ(e.master_port, 29500);
  EXPECT_TRUE(e.agent_store);
  EXPECT_EQ(e.restarts, 2);
}

TEST(Environment, IsNoneForOneProcess) {
  EXPECT_FALSE(read({}));
  EXPECT_FALSE(read({{"MASTER_ADDR", "h"}}));  // as some clusters set it for all jobs
}

TEST(Environment, RefusesHalfOfTheVariables) {
  for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"}) {
    Variables variables = sound();
    variables.erase(name);
    const std::string message = message_of([&] { read(variables); });
    EXPECT_NE(message.find(std::string("got none of ") + name), std::string::npos) << message;
  }
}

TEST(Environment, RefusesWrongValues) {
  const std::pair<const char*, const char*> wrong[] = {{"RANK", "8"},
                                                       {"RANK", "-1"},
                                                       {"RANK", "1x"},
                                                       {"RANK", ""},
                                                       {"WORLD_SIZE", "0"},
                                                       {"WORLD_SIZE", "5"},
                                                       {"LOCAL_RANK", "6"},
                                                       {"MASTER_PORT", "0"},
                                                       {"MASTER_PORT", "65536"},
                                                       {"LOCAL_WORLD_SIZE", "9"},
                                                       {"WORLD_SIZE", "99999999999"}};
  for (const auto& [name, value] : wrong) {
    Variables variables = sound();
    variables[name] = value;
    EXPECT_NE(message_of([&] { read(variables); }).find("[dist] expected"), std::string::npos)
        << name << "=" << value;
  }
}

}  // namespace
}  // namespace qact::dist
