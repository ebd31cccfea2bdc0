#include "qact/data/frost.h"

#include "qact/base/fail.h"
#include "qact/data/digest.h"

namespace qact::data {
namespace {

struct Texture {
  const char *name, *digest;
};
constexpr Texture kTextures[] = {
    {"frost1.png", "sha256:ff9f907860bd7a835d459e32f9d588062b7f61ee267343cc7222b56753a14755"},
    {"frost2.png", "sha256:fe211a89b336999c207a852ce05818d4545d0b57c5beadd824b4cc9d9a9b6137"},
    {"frost3.png", "sha256:2d0d50b4a9bb213f38b024ef7768731bb83cc08d2f26b5766bbc167cdfa0e504"},
    {"frost4.jpg", "sha256:3f8b91ca1a9fa7167b09e773da53f5ae60d0a1fd88f02a783f6e328a72887f6e"},
    {"frost5.jpg", "sha256:5fc6a19df4a429ba68abdcc8f8a4278d4c9f81c9ccafd2c92ab0c8cf8992ebd2"}};

void expect_official(const fs::path& folder) {
  for (const Texture& texture : kTextures) check_digest(folder / texture.name, texture.digest);
}

}  // namespace

FetchRequest frost_request() {
  const Source package{
      .kind = Source::Kind::pip,
      .package = "imagecorruptions==1.1.2",
      .digest = "sha256:d0e4bf529ba6fbb27d8aba1bde7c5db43bf2b969b2c767c11419e939e3e365b8",
      .inside = "imagecorruptions/frost/"};
  return {"frost", {package}, expect_official};
}

fs::path official_frost_folder(const fs::path& data_folder) {
  const fs::path folder = data_folder / frost_request().name;
  if (!fs::is_directory(folder)) {
    base::fail("frost", "expected the official textures in ", folder.string(),
               ", got nothing there: `qact data fetch frost` gets them");
  }
  try {
    expect_official(folder);
  } catch (const std::exception& error) {
    base::fail("frost", "expected the official textures in ", folder.string(), ", got others (",
               error.what(), "): remove the folder, and `qact data fetch frost` gets them");
  }
  return folder;
}

std::string frost_identity(const fs::path& folder) {
  Digest all;
  bool official = true;
  for (const Texture& texture : kTextures) {
    const std::string digest = "sha256:" + digest_of(folder / texture.name, "sha256");
    official = official && digest == texture.digest;
    all.add(digest.data(), digest.size());
  }
  return official ? "official" : "sha256:" + all.hex().substr(0, kShortDigest);
}

}  // namespace qact::data
