#include "qact/report/assets.h"

// The begin and end of each file, from embed.S.in.
extern "C" {
extern const char qact_page_style[], qact_page_style_end[];
extern const char qact_page_script[], qact_page_script_end[];
extern const char qact_vega_bundle[], qact_vega_bundle_end[];
}

namespace qact::report {
namespace {

std::string_view between(const char* begin, const char* end) {
  return {begin, static_cast<size_t>(end - begin)};
}

}  // namespace

std::string_view page_style() { return between(qact_page_style, qact_page_style_end); }
std::string_view page_script() { return between(qact_page_script, qact_page_script_end); }
std::string_view vega_bundle() { return between(qact_vega_bundle, qact_vega_bundle_end); }

}  // namespace qact::report
