// The textures of the corruption frost, as the command line names them.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "qact/corrupt/frost_texture.h"

namespace qact::eval {

inline constexpr const char* kFrostHelp =
    "Textures of frost: procedural, official (after `qact data fetch frost`), or the path of a "
    "folder with frost1.png, frost2.png, frost3.png, frost4.jpg and frost5.jpg";

// Why `choice` is not valid; empty where it may be.
std::string frost_refusal(const std::string& choice);

// "procedural"; "official", which `qact data fetch frost` gets into `data_folder`; or a folder's
// path, which has a slash.
std::shared_ptr<const corrupt::FrostTextures> open_frost(const std::string& choice,
                                                         const std::filesystem::path& data_folder);

}  // namespace qact::eval
