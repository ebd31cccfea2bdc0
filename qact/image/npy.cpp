// A magic, a version, a length, and a header that is a literal Python dictionary of exactly three
// keys.
#include "qact/image/npy.h"

#include <charconv>
#include <cstring>
#include <string_view>

#include "qact/base/fail.h"

namespace qact::image {

using base::Bytes;
using base::fail;

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

int64_t item_bytes_of(std::string_view dtype) {
  constexpr std::string_view known[] = {"b1", "i1", "u1", "i2", "u2", "f2",
                                        "i4", "u4", "f4", "i8", "u8", "f8"};
  for (const std::string_view name : known) {
    if (dtype.size() == 3 && dtype.substr(1) == name) return name[1] - '0';
  }
  return 0;
}

// Parses the few forms of Python literals that a header has.
class Parser {
 public:
  explicit Parser(std::string_view text) : rest_(text) {}

  NpyHeader header() {
    NpyHeader out;
    bool has_dtype = false, has_order = false, has_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr" && !has_dtype) {
        out.dtype = dtype();
        has_dtype = true;
      } else if (key == "fortran_order" && !has_order) {
        order();
        has_order = true;
      } else if (key == "shape" && !has_shape) {
        out.shape = shape();
        has_shape = true;
      } else {
        fail("npy", "expected the keys descr, fortran_order and shape once each, got ", key);
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    if (!has_dtype || !has_order || !has_shape) {
      fail("npy", "expected the keys descr, fortran_order and shape, got a header without one");
    }
    return out;
  }

 private:
  void skip_spaces() {
    const size_t at = rest_.find_first_not_of(" \t\r\n");
    rest_.remove_prefix(at == rest_.npos ? rest_.size() : at);
  }

  bool accept(char c) {
    skip_spaces();
    if (rest_.empty() || rest_[0] != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  void expect(char c) {
    if (!accept(c)) fail("npy", "expected '", c, "' in the header, got ", found());
  }

  std::string found() const {
    if (rest_.empty()) return "its end";
    const auto c = static_cast<unsigned char>(rest_[0]);
    return c >= 32 && c < 127 ? std::string("'") + rest_[0] + "'" : "byte " + std::to_string(c);
  }

  std::string quoted() {
    skip_spaces();
    const char quote = rest_.empty() ? 0 : rest_[0];
    if (quote != '\'' && quote != '"') fail("npy", "expected a quoted name, got ", found());
    const size_t end = rest_.find(quote, 1);
    if (end == rest_.npos) fail("npy", "expected a closing quote in the header, got its end");
    const std::string out(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return out;
  }

  std::string dtype() {
    skip_spaces();
    if (!rest_.empty() && rest_[0] == '[') {
      fail("npy", "expected an array of numbers, got one of records");
    }
    const std::string name = quoted();
    if (name.find('O') != name.npos) {
      fail("npy", "expected an array of numbers, got pickled Python objects");
    }
    if (name.starts_with('>') && item_bytes_of(name) > 1) {
      fail("npy", "expected little-endian numbers, got the big-endian dtype ", name);
    }
    if (item_bytes_of(name) == 0) {
      fail("npy", "expected integers or floats of 1 to 8 bytes, got the dtype ",
           name.substr(0, 32));
    }
    return name;
  }

  void order() {
    skip_spaces();
    if (rest_.starts_with("True")) {
      fail("npy", "expected an array in C order, got one in Fortran order");
    }
    if (!rest_.starts_with("False")) fail("npy", "expected True or False, got ", found());
    rest_.remove_prefix(5);
  }

  std::vector<int64_t> shape() {
    std::vector<int64_t> out;
    expect('(');
    while (!accept(')')) {
      skip_spaces();
      int64_t size = 0;
      const char* end = rest_.data() + rest_.size();
      const auto [stop, error] = std::from_chars(rest_.data(), end, size);
      if (error != std::errc{} || size < 0) fail("npy", "expected a size, got ", found());
      rest_.remove_prefix(stop - rest_.data());
      if (out.size() == 32) fail("npy", "expected at most 32 dimensions, got more");
      out.push_back(size);
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return out;
  }

  std::string_view rest_;
};

// The array's bytes; -1 where they are more than `limit`.
int64_t data_bytes(const NpyHeader& header, int64_t limit) {
  int64_t bytes = header.item_bytes();
  for (const int64_t size : header.shape) {
    if (size == 0) return 0;
    bytes = bytes > limit / size ? limit + 1 : bytes * size;
  }
  return bytes > limit ? -1 : bytes;
}

}  // namespace

int64_t NpyHeader::count() const {
  int64_t count = 1;
  for (const int64_t size : shape) {
    if (size == 0) return 0;  // whatever the others are
  }
  for (const int64_t size : shape) count *= size;
  return count;
}

int64_t NpyHeader::item_bytes() const { return item_bytes_of(dtype); }

NpyHeader parse_npy_header(Bytes bytes, int64_t file_bytes) {
  const auto* text = reinterpret_cast<const char*>(bytes.data());
  if (bytes.size() < 12) fail("npy", "expected a header, got a file of ", bytes.size(), " bytes");
  if (std::string_view(text, kMagic.size()) != kMagic) {
    fail("npy", "expected a file that starts with \\x93NUMPY, got another");
  }
  const int version = bytes[6];
  if (version < 1 || version > 3) fail("npy", "expected version 1 to 3, got ", version);
  const int64_t start = version == 1 ? 10 : 12;
  int64_t length = bytes[8] + (bytes[9] << 8);
  if (version > 1) length += (int64_t{bytes[10]} << 16) + (int64_t{bytes[11]} << 24);
  if (length > static_cast<int64_t>(bytes.size()) - start) {
    fail("npy", "expected a header of ", length, " bytes, got ", bytes.size() - start);
  }
  NpyHeader header = Parser({text + start, static_cast<size_t>(length)}).header();
  header.data_offset = start + length;
  const int64_t left = file_bytes - header.data_offset;
  if (data_bytes(header, left) != left) {
    std::string shape;
    for (const int64_t size : header.shape)
      shape += (shape.empty() ? "" : ", ") + std::to_string(size);
    fail("npy", "expected the data of shape (", shape, ") and dtype ", header.dtype, ", got ", left,
         " bytes");
  }
  return header;
}

std::vector<uint8_t> make_npy_header(const std::string& dtype, const std::vector<int64_t>& shape) {
  std::string text = "{'descr': '" + dtype + "', 'fortran_order': False, 'shape': (";
  for (size_t i = 0; i < shape.size(); ++i) {
    text += std::to_string(shape[i]) + (i + 1 < shape.size() ? ", " : "");
  }
  text += shape.size() == 1 ? ",), }" : "), }";
  // The data starts at a multiple of 64.
  text.append(64 - (10 + text.size() + 1) % 64, ' ');
  text += '\n';
  std::string out(kMagic);
  out += {1, 0, static_cast<char>(text.size() & 255), static_cast<char>(text.size() >> 8)};
  out += text;
  return {out.begin(), out.end()};
}

}  // namespace qact::image
