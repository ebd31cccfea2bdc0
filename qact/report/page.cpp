#include "qact/report/page.h"

#include "qact/base/atomic_file.h"
#include "qact/report/assets.h"
#include "qact/report/csv.h"
#include "qact/report/html.h"

namespace qact::report {
namespace {

// The page loads nothing from outside; this policy makes the browser enforce it. Vega compiles its
// expressions, hence unsafe-eval.
constexpr const char* kPolicy =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline' 'unsafe-eval'; "
    "img-src data: blob:";

std::string element(std::string_view tag, std::string_view content) {
  return std::string("<").append(tag).append(">\n").append(content).append("</").append(tag) +
         ">\n";
}

std::string introduction(const Section& section) {
  return *section.intro ? to_html({Text{section.intro}}) : "";
}

std::string body(const std::string& title, const results::Rows& rows) {
  std::string html = "<main>\n<h1>" + escape(title) + "</h1>\n" +
                     "<noscript><p>The charts need JavaScript; the tables do not.</p></noscript>\n";
  for (const Section& section : sections()) {
    const std::vector<Block> blocks = section.make(rows);
    if (blocks.empty()) continue;
    html += std::string("<section id=\"section-") + section.name + "\">\n<h2>" +
            escape(section.title) + "</h2>\n" + introduction(section) + to_html(blocks) +
            "</section>\n";
  }
  return html + "</main>\n";
}

}  // namespace

std::string make_page(const std::string& title, const results::Rows& rows) {
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta http-equiv=\"Content-Security-Policy\" content=\"" +
         std::string(kPolicy) +
         "\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
         "<meta name=\"color-scheme\" content=\"light dark\">\n<title>" +
         escape(title) + "</title>\n" + element("style", page_style()) + "</head>\n<body>\n" +
         body(title, rows) + element("script", vega_bundle()) + element("script", page_script()) +
         "</body>\n</html>\n";
}

std::vector<Chart> make_charts(const results::Rows& rows) {
  std::vector<Chart> charts;
  for (const Section& section : sections()) {
    for (Block& block : section.make(rows)) {
      if (auto* chart = std::get_if<Chart>(&block)) charts.push_back(std::move(*chart));
    }
  }
  return charts;
}

void write_charts(const std::filesystem::path& folder, const results::Rows& rows) {
  std::filesystem::create_directories(folder);
  for (const Chart& chart : make_charts(rows)) {
    base::write_atomically(folder / (chart.name + ".vl.json"), chart.spec.dump(2) + "\n");
    base::write_atomically(folder / (chart.name + ".csv"), csv_of(chart.spec));
  }
}

}  // namespace qact::report
