#include "qact/report/html.h"

namespace qact::report {
namespace {

std::string replace_all(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

struct ToHtml {
  std::string operator()(const Text& text) const { return "<p>" + escape(text.text) + "</p>\n"; }

  std::string operator()(const Heading& heading) const {
    return "<h3>" + escape(heading.text) + "</h3>\n";
  }

  std::string operator()(const Code& code) const {
    const std::string html = "<pre><code>" + escape(code.text) + "</code></pre>\n";
    if (code.title.empty()) return html;
    return "<details><summary>" + escape(code.title) + "</summary>\n" + html + "</details>\n";
  }

  std::string operator()(const Image& image) const {
    return "<figure class=\"image\">\n<img alt=\"" + escape(image.caption) +
           "\" src=\"data:image/png;base64," + escape(image.png) + "\">\n<figcaption>" +
           escape(image.caption) + "</figcaption>\n</figure>\n";
  }

  std::string operator()(const Table& table) const {
    const bool dense = table.columns.size() > 6;
    std::string html = std::string("<div class=\"table\"><table") +
                       (dense ? " class=\"dense\"" : "") + ">\n<thead><tr>";
    for (const auto& column : table.columns) html += cell("th", column, column.title);
    html += "</tr></thead>\n<tbody>\n";
    for (const auto& row : table.rows) {
      html += "<tr>";
      for (size_t c = 0; c < row.size(); ++c) html += cell("td", table.columns.at(c), row[c]);
      html += "</tr>\n";
    }
    html += "</tbody></table></div>\n";
    return table.caption.empty() ? html
                                 : html + "<p class=\"note\">" + escape(table.caption) + "</p>\n";
  }

  std::string operator()(const Chart& chart) const {
    const std::string name = escape(chart.name);
    const std::string shape = chart.spec.at("usermeta").at("shape");
    return "<figure class=\"" + shape + "\">\n<div class=\"chart\" data-chart=\"" + name +
           "\"></div>\n" + "<script type=\"application/json\" id=\"" + name + "\">" +
           script_json(chart.spec) + "</script>\n<figcaption>" + escape(chart.caption) +
           "</figcaption>\n</figure>\n";
  }

  static std::string cell(const std::string& tag, const Table::Column& column,
                          const std::string& text) {
    return "<" + tag + (column.numeric ? " class=\"number\">" : ">") + escape(text) + "</" + tag +
           ">";
  }
};

}  // namespace

std::string escape(std::string_view text) {
  std::string html;
  for (const char c : text) {
    switch (c) {
      case '&':
        html += "&amp;";
        break;
      case '<':
        html += "&lt;";
        break;
      case '>':
        html += "&gt;";
        break;
      case '"':
        html += "&quot;";
        break;
      default:
        html += c;
    }
  }
  return html;
}

std::string script_json(const nlohmann::ordered_json& value) {
  return replace_all(value.dump(), "<", "\\u003c");
}

std::string to_html(const std::vector<Block>& blocks) {
  std::string html;
  bool in_charts = false;
  for (const Block& block : blocks) {
    const bool is_chart = std::holds_alternative<Chart>(block);
    if (is_chart != in_charts) html += is_chart ? "<div class=\"charts\">\n" : "</div>\n";
    in_charts = is_chart;
    html += std::visit(ToHtml{}, block);
  }
  return html + (in_charts ? "</div>\n" : "");
}

}  // namespace qact::report
