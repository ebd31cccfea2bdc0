// Through libpng, which reports errors with longjmp: functions that call setjmp hold nothing with a
// destructor.
#include "qact/image/png.h"

#include <png.h>

#include <cstring>

#include "qact/base/fail.h"
#include "qact/image/colour.h"

namespace qact::image {

using base::Bytes;
using base::fail;

namespace {

// Deflate expands one byte to at most 1032.
constexpr int64_t kMaxExpansion = 1032;

struct Source {
  Bytes bytes;
  size_t position = 0;
  char message[200] = {};
};

void on_error(png_structp png, png_const_charp message) {
  auto* text = static_cast<char*>(png_get_error_ptr(png));
  std::strncpy(text, message, sizeof(Source::message) - 1);
  png_longjmp(png, 1);
}

void on_warning(png_structp, png_const_charp) {}

void read_bytes(png_structp png, png_bytep out, size_t count) {
  auto* source = static_cast<Source*>(png_get_io_ptr(png));
  if (count > source->bytes.size() - source->position) png_error(png, "a truncated file");
  std::memcpy(out, source->bytes.data() + source->position, count);
  source->position += count;
}

// Asks libpng for 8-bit grey or RGB whatever the file holds, or for grey alone, and checks the
// sizes.
bool read_header(png_structp png, png_infop info, Source* source, bool grey, Size* size) {
  if (setjmp(png_jmpbuf(png))) return false;
  png_set_read_fn(png, source, read_bytes);
  png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);  // check_pixels() limits the product
  png_set_chunk_malloc_max(png, 1 << 20);
  png_read_info(png, info);
  const int64_t height = png_get_image_height(png, info);
  const int64_t width = png_get_image_width(png, info);
  check_pixels("png", width, height);
  const int64_t raw = height * static_cast<int64_t>(png_get_rowbytes(png, info));
  if (raw / kMaxExpansion > static_cast<int64_t>(source->bytes.size())) {
    png_error(png, "more pixels than its bytes can hold");
  }
  png_set_expand(png);
  png_set_strip_16(png);
  png_set_strip_alpha(png);
  const bool coloured = png_get_color_type(png, info) & PNG_COLOR_MASK_COLOR;
  if (grey && coloured) png_set_rgb_to_gray(png, PNG_ERROR_ACTION_NONE, 0.299, 0.587);
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
  *size = {static_cast<int>(height), static_cast<int>(width), png_get_channels(png, info)};
  return true;
}

bool read_pixels(png_structp png, png_infop info, png_bytepp rows) {
  if (setjmp(png_jmpbuf(png))) return false;
  png_read_image(png, rows);
  png_read_end(png, info);
  return true;
}

void append_bytes(png_structp png, png_bytep bytes, size_t count) {
  auto* out = static_cast<std::vector<uint8_t>*>(png_get_io_ptr(png));
  out->insert(out->end(), bytes, bytes + count);
}

void flush_nothing(png_structp) {}

bool write_image(png_structp png, png_infop info, Size size, png_bytepp rows,
                 std::vector<uint8_t>* out) {
  if (setjmp(png_jmpbuf(png))) return false;
  png_set_write_fn(png, out, append_bytes, flush_nothing);
  png_set_IHDR(png, info, size.width, size.height, 8,
               size.channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png, info);
  png_write_image(png, rows);
  png_write_end(png, nullptr);
  return true;
}

struct Reader {
  explicit Reader(char* message)
      : png(png_create_read_struct(PNG_LIBPNG_VER_STRING, message, on_error, on_warning)),
        info(png_create_info_struct(png)) {}
  ~Reader() { png_destroy_read_struct(&png, &info, nullptr); }
  png_structp png;
  png_infop info;
};

struct Writer {
  explicit Writer(char* message)
      : png(png_create_write_struct(PNG_LIBPNG_VER_STRING, message, on_error, on_warning)),
        info(png_create_info_struct(png)) {}
  ~Writer() { png_destroy_write_struct(&png, &info); }
  png_structp png;
  png_infop info;
};

std::vector<png_bytep> row_pointers(Image* image) {
  std::vector<png_bytep> rows(image->size.height);
  for (int y = 0; y < image->size.height; ++y) rows[y] = image->row(y);
  return rows;
}

Image decode(Bytes bytes, bool grey) {
  Source source{bytes};
  Reader reader(source.message);
  Size size;
  if (!read_header(reader.png, reader.info, &source, grey, &size)) {
    fail("png", "expected a PNG image, got: ", source.message);
  }
  Image image(size);
  std::vector<png_bytep> rows = row_pointers(&image);
  if (!read_pixels(reader.png, reader.info, rows.data())) {
    fail("png", "expected a PNG image of ", size.width, "x", size.height,
         ", got: ", source.message);
  }
  return image;
}

}  // namespace

Image decode_png(Bytes bytes, int channels) {
  return with_channels(decode(bytes, false), channels);
}

Image decode_png_grey(Bytes bytes) { return decode(bytes, true); }

std::vector<uint8_t> encode_png(const Image& image) {
  char message[sizeof(Source::message)] = {};
  Writer writer(message);
  Image copy = image;  // libpng's rows are not const
  std::vector<png_bytep> rows = row_pointers(&copy);
  std::vector<uint8_t> out;
  if (!write_image(writer.png, writer.info, image.size, rows.data(), &out)) {
    fail("png", "cannot write an image of ", image.size.width, "x", image.size.height, "x",
         image.size.channels, ": ", message);
  }
  return out;
}

}  // namespace qact::image
