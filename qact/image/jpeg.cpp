// Through libjpeg-turbo, which reports errors with longjmp: functions that call setjmp hold nothing
// with a destructor.
#include "qact/image/jpeg.h"

#include <csetjmp>
#include <cstdio>
// jpeglib.h needs size_t and FILE before it.
#include <jerror.h>
#include <jpeglib.h>

#include <cstdlib>
#include <cstring>
#include <memory>

#include "qact/base/fail.h"
#include "qact/image/colour.h"

namespace qact::image {

using base::Bytes;
using base::fail;

namespace {

// A block of 8 x 8 takes at least a bit, and chroma may be subsampled to a quarter: a file with
// more pixels per byte, or more scans, is a decompression bomb.
constexpr int64_t kMaxPixelsPerByte = 1024;
constexpr int kMaxScans = 100;

struct ErrorState {
  jpeg_error_mgr manager;  // first: libjpeg hands back a pointer to it
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX] = {};
};

[[noreturn]] void jump_out(j_common_ptr state, const char* message) {
  auto* errors = reinterpret_cast<ErrorState*>(state->err);
  if (message) {
    std::strncpy(errors->message, message, sizeof(errors->message) - 1);
  } else {
    state->err->format_message(state, errors->message);
  }
  std::longjmp(errors->jump, 1);
}

// libjpeg invents pixels where the data is corrupt and only warns; here that is an error.
// What remains a warning leaves the pixels whole.
void on_message(j_common_ptr state, int level) {
  const int code = state->err->msg_code;
  const bool harmless =
      code == JWRN_EXTRANEOUS_DATA || code == JWRN_JFIF_MAJOR || code == JWRN_ADOBE_XFORM;
  if (level < 0 && !harmless) jump_out(state, nullptr);
}

void on_progress(j_common_ptr state) {
  if (reinterpret_cast<j_decompress_ptr>(state)->input_scan_number > kMaxScans) {
    jump_out(state, "more scans than an image has");
  }
}

jpeg_error_mgr* prepare(ErrorState* errors) {
  jpeg_std_error(&errors->manager);
  errors->manager.error_exit = [](j_common_ptr state) { jump_out(state, nullptr); };
  errors->manager.emit_message = on_message;
  return &errors->manager;
}

struct Decompressor {
  Decompressor() {
    state.err = prepare(&errors);
    jpeg_create_decompress(&state);
    progress.progress_monitor = on_progress;
    state.progress = &progress;
  }
  ~Decompressor() { jpeg_destroy_decompress(&state); }
  ErrorState errors;
  jpeg_progress_mgr progress = {};
  jpeg_decompress_struct state = {};
};

bool read_header(Decompressor* reader, Bytes bytes, bool grey, Size* size) {
  jpeg_decompress_struct* state = &reader->state;
  if (setjmp(reader->errors.jump)) return false;
  jpeg_mem_src(state, bytes.data(), bytes.size());
  jpeg_read_header(state, TRUE);
  const int64_t pixels = int64_t{state->image_height} * state->image_width;
  check_pixels("jpeg", state->image_width, state->image_height);
  if (pixels / kMaxPixelsPerByte > static_cast<int64_t>(bytes.size())) {
    jump_out(reinterpret_cast<j_common_ptr>(state), "more pixels than its bytes can hold");
  }
  if (state->num_components == 4) {
    state->out_color_space = JCS_CMYK;
  } else if (state->num_components != 1) {
    const bool has_luma = state->jpeg_color_space == JCS_YCbCr;
    state->out_color_space = grey && has_luma ? JCS_GRAYSCALE : JCS_RGB;
  }
  jpeg_start_decompress(state);
  *size = {static_cast<int>(state->output_height), static_cast<int>(state->output_width),
           state->output_components};
  return true;
}

bool read_pixels(Decompressor* reader, Image* image) {
  jpeg_decompress_struct* state = &reader->state;
  if (setjmp(reader->errors.jump)) return false;
  while (state->output_scanline < state->output_height) {
    JSAMPROW row = image->row(state->output_scanline);
    jpeg_read_scanlines(state, &row, 1);
  }
  jpeg_finish_decompress(state);
  return true;
}

// CMYK to RGB. The four inks are stored inverted, as Adobe does and Pillow assumes.
Image rgb_from_cmyk(const Image& inks) {
  Image out({inks.size.height, inks.size.width, 3});
  const int64_t pixels = int64_t{out.size.height} * out.size.width;
  for (int64_t i = 0; i < pixels; ++i) {
    const uint8_t* ink = &inks.pixels[4 * i];
    for (int c = 0; c < 3; ++c) {
      const int product = (255 - ink[c]) * ink[3] + 128;
      out.pixels[3 * i + c] = static_cast<uint8_t>(ink[3] - ((product + (product >> 8)) >> 8));
    }
  }
  return out;
}

struct Compressor {
  Compressor() {
    state.err = prepare(&errors);
    jpeg_create_compress(&state);
  }
  ~Compressor() {
    jpeg_destroy_compress(&state);
    std::free(bytes);
  }
  ErrorState errors;
  jpeg_compress_struct state = {};
  unsigned char* bytes = nullptr;
  unsigned long count = 0;
};

bool write_image(Compressor* writer, const Image& image, int quality, bool optimise) {
  jpeg_compress_struct* state = &writer->state;
  if (setjmp(writer->errors.jump)) return false;
  jpeg_mem_dest(state, &writer->bytes, &writer->count);
  state->image_width = image.size.width;
  state->image_height = image.size.height;
  state->input_components = image.size.channels;
  state->in_color_space = image.size.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(state);
  jpeg_set_quality(state, quality, TRUE);
  state->optimize_coding = optimise;
  jpeg_start_compress(state, TRUE);
  while (state->next_scanline < state->image_height) {
    JSAMPROW row = const_cast<uint8_t*>(image.row(state->next_scanline));
    jpeg_write_scanlines(state, &row, 1);
  }
  jpeg_finish_compress(state);
  return true;
}

Image decode(Bytes bytes, bool grey) {
  Decompressor reader;
  Size size;
  if (!read_header(&reader, bytes, grey, &size)) {
    fail("jpeg", "expected a JPEG image, got: ", reader.errors.message);
  }
  Image image(size);
  if (!read_pixels(&reader, &image)) {
    fail("jpeg", "expected a JPEG image of ", size.width, "x", size.height,
         ", got: ", reader.errors.message);
  }
  return size.channels == 4 ? rgb_from_cmyk(image) : image;
}

}  // namespace

Image decode_jpeg(Bytes bytes, int channels) {
  return with_channels(decode(bytes, false), channels);
}

Image decode_jpeg_grey(Bytes bytes) { return with_channels(decode(bytes, true), 1); }

std::vector<uint8_t> encode_jpeg(const Image& image, int quality, bool optimise) {
  Compressor writer;
  if (!write_image(&writer, image, quality, optimise)) {
    fail("jpeg", "cannot write an image of ", image.size.width, "x", image.size.height, "x",
         image.size.channels, ": ", writer.errors.message);
  }
  return {writer.bytes, writer.bytes + writer.count};
}

}  // namespace qact::image
