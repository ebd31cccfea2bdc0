#include "qact/report/summary.h"

#include <cmath>
#include <set>

#include "qact/report/choices.h"
#include "qact/report/curves.h"
#include "qact/report/sections.h"
#include "qact/report/severity_chart.h"

namespace qact::report {
namespace {

std::string points(double value) { return fixed(value, 1) + " points"; }

double drop(const Curve& curve, const Group& group) {
  return 100 * curve.mean("drop", group.max_severity, group.corruptions);
}

constexpr const char* kAgainst = "Against ";

double percent(const Curve& curve, int severity, const Group& group) {
  return 100 * curve.mean("accuracy", severity, group.corruptions);
}

// By how much, and in which direction, in plain words. Without uncorrupted images there is no drop.
std::string against(const Curve& ours, const Curve& baseline, const Group& group) {
  const double accuracy =
      percent(ours, group.max_severity, group) - percent(baseline, group.max_severity, group);
  const double loses_less = drop(baseline, group) - drop(ours, group);
  std::string line = kAgainst + baseline.label + ": " + points(std::abs(accuracy)) +
                     (accuracy >= 0 ? " more" : " fewer") + " correct at severity " +
                     std::to_string(group.max_severity);
  if (std::isfinite(loses_less)) {
    line += ", and a drop that is " + points(std::abs(loses_less)) +
            (loses_less >= 0 ? " smaller" : " larger");
  }
  return line + ".";
}

std::vector<int> all_severities(const Group& group) {
  std::set<int> all;
  for (const Curve& curve : group.curves) {
    for (const int severity : curve.severities()) all.insert(severity);
  }
  return {all.begin(), all.end()};
}

// Accuracy under random tone curves, no part of the mean over corruptions.
std::string under_tone(const Group& group) {
  std::string line =
      "Under random tone curves of severity " + std::to_string(group.max_severity) + ":";
  for (const Curve& curve : group.curves) {
    const double accuracy = 100 * curve.mean("accuracy", group.max_severity, {kTone});
    if (!group.is_plain(curve.setting) || !std::isfinite(accuracy)) continue;
    line += (line.back() == ':' ? " " : "; ") + curve.label + " " + fixed(accuracy, 1) + " %";
  }
  return line + ".";
}

// One for each network, with the baselines that it is held against.
std::vector<std::string> paragraphs(const std::vector<std::string>& lines) {
  std::vector<std::string> all;
  for (const std::string& line : lines) {
    if (all.empty() || !line.starts_with(kAgainst)) {
      all.push_back(line);
    } else {
      all.back() += " " + line;
    }
  }
  return all;
}

// Of every placement and on every stream: with batch statistics against ReLU with either kind and
// against TENT on it, in batches of the same size, and with running ones, which single images need,
// against ReLU with running ones. Only curves that have all corruptions at the highest severity.
std::vector<std::string> held_against_relu(const Group& group) {
  std::vector<std::string> lines;
  if (group.corruptions.empty()) return lines;
  bool toned = false;
  for (const Curve& ours : group.curves) {
    const Setting& s = ours.setting;
    const bool batch = s.mode == "batch";
    if (s.activation != "qact" || s.adapt != kNotAdapted) continue;
    if (!group.is_usual(s) || !(batch || s.mode == "tracked")) continue;
    const auto is_measured = [&](const Curve& curve) {
      return std::isfinite(percent(curve, group.max_severity, group));
    };
    toned |= group.is_plain(s) && std::isfinite(ours.mean("accuracy", group.max_severity, {kTone}));
    if (!is_measured(ours)) continue;
    const double clean = percent(ours, 0, group);
    lines.push_back(
        ours.label + ": " +
        (std::isfinite(clean) ? fixed(clean, 1) + " % of the uncorrupted images, " : "") +
        fixed(percent(ours, group.max_severity, group), 1) + " % at severity " +
        std::to_string(group.max_severity) + ".");
    std::vector<const Curve*> baselines = {group.closest(s, "relu", "tracked")};
    if (batch) {
      baselines.push_back(group.closest(s, "relu", "batch"));
      baselines.push_back(group.closest(s, "relu", "batch", "tent"));
    }
    for (const Curve* baseline : baselines) {
      if (baseline && is_measured(*baseline)) lines.push_back(against(ours, *baseline, group));
    }
  }
  if (toned) lines.push_back(under_tone(group));
  return lines;
}

}  // namespace

Table summary_table(const Group& group) {
  const std::string most = std::to_string(group.max_severity);
  Table table{.columns = {{"network"},
                          {"accuracy, clean", true},
                          {"at severity " + most, true},
                          {"drop", true},
                          {"mean error", true},
                          {"calibration, top", true},
                          {"marginal", true},
                          {"MAP@100", true}},
              .rows = {}};
  const std::vector<int> severities = all_severities(group);
  for (const Curve& curve : group.curves) {
    const auto at_most = [&](const char* metric) {
      return curve.mean(metric, group.max_severity, group.corruptions);
    };
    table.rows.push_back({curve.label, fixed(100 * curve.mean("accuracy", 0, group.corruptions), 2),
                          fixed(100 * at_most("accuracy"), 2), fixed(drop(curve, group), 2),
                          fixed(100 * curve.corruption_error(severities, group.corruptions), 2),
                          fixed(at_most("ece_top"), 4), fixed(at_most("ece_marginal"), 4),
                          fixed(at_most("map100"), 4)});
  }
  table.caption = "Means of " + std::to_string(group.corruptions.size()) +
                  " corruptions and of all seeds. Accuracy, drop (clean less severity " + most +
                  ") and mean error (over all severities from 1) in per cent; calibration errors "
                  "and MAP@100 at severity " +
                  most + ".";
  return table;
}

std::vector<std::string> verdict(const Group& group) {
  std::vector<std::string> lines = choices_text(group, choices(group));
  for (std::string& line : held_against_relu(group)) lines.push_back(std::move(line));
  return lines;
}

std::vector<Block> summary(const results::Rows& rows) {
  std::vector<Block> blocks;
  for (const Group& group : groups(rows)) {
    if (group.max_severity == 0) continue;
    blocks.push_back(Heading{group.title()});
    for (const std::string& note : group.notes) blocks.push_back(Text{note});
    if (group.corruptions.empty()) {
      blocks.push_back(
          Text{"These networks have no corruption in common, so there is no mean to compare."});
      continue;
    }
    if (const std::vector<const Curve*> curves = headline(group); !curves.empty()) {
      blocks.push_back(
          severity_chart(group.slug("headline"), severity_metrics()[0], curves, group.corruptions));
    }
    if (const std::vector<Choice> all = choices(group); !all.empty()) {
      blocks.push_back(choices_table(group, all));
    }
    for (std::string& text : paragraphs(held_against_relu(group))) {
      blocks.push_back(Text{std::move(text)});
    }
    blocks.push_back(summary_table(group));
  }
  return blocks;
}

}  // namespace qact::report
