// The report: one self-contained HTML page with its style, charts and the script that draws them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "qact/report/sections.h"

namespace qact::report {

std::string make_page(const std::string& title, const results::Rows& rows);

// The charts of the page.
std::vector<Chart> make_charts(const results::Rows& rows);

// Writes folder/NAME.vl.json and its data, NAME.csv, for each chart. scripts/render_figure.py
// renders them.
void write_charts(const std::filesystem::path& folder, const results::Rows& rows);

}  // namespace qact::report
