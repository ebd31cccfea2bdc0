#include "qact/dist/process.h"

#include <elf.h>
#include <link.h>
#include <sys/stat.h>
#include <torch/version.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <vector>

namespace qact::dist {
namespace {

// Process numbers mean something within one namespace alone, as containers have.
std::string machine() {
  std::array<char, 256> name = {};
  gethostname(name.data(), name.size() - 1);
  struct stat numbers = {};
  stat("/proc/self/ns/pid", &numbers);
  return std::string(name.data()) + "/" + std::to_string(numbers.st_ino);
}

std::string build_id(const char* notes, size_t size) {
  while (size >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes, sizeof note);
    const auto padded = [](size_t bytes) { return (bytes + 3) / 4 * 4; };
    const size_t length = sizeof note + padded(note.n_namesz) + padded(note.n_descsz);
    if (length > size) break;
    if (note.n_type == NT_GNU_BUILD_ID) {
      constexpr char kDigits[] = "0123456789abcdef";
      std::string text;
      for (size_t i = 0; i < note.n_descsz; ++i) {
        const auto byte =
            static_cast<unsigned char>(notes[sizeof note + padded(note.n_namesz) + i]);
        text += {kDigits[byte >> 4], kDigits[byte & 15]};
      }
      return text.substr(0, 12);
    }
    notes += length;
    size -= length;
  }
  return "none";
}

// Of a library of qact's, or of the program, whose name is empty.
int add_build_id(dl_phdr_info* object, size_t, void* ids) {
  const std::string name = object->dlpi_name;
  if (!name.empty() && name.find("libqact") == std::string::npos) return 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto& part = object->dlpi_phdr[i];
    if (part.p_type != PT_NOTE) continue;
    const auto* notes = reinterpret_cast<const char*>(object->dlpi_addr + part.p_vaddr);
    const std::string id = build_id(notes, part.p_memsz);
    if (id != "none") static_cast<std::vector<std::string>*>(ids)->push_back(id);
  }
  return 0;
}

}  // namespace

std::string this_process() { return std::to_string(getpid()) + " " + machine(); }

std::string process_name(const std::string& process) {
  const size_t space = process.find(' ');
  return "process " + process.substr(0, space) + " on " +
         process.substr(space + 1, process.rfind('/') - space - 1);
}

bool has_ended(const std::string& process) {
  const size_t space = process.find(' ');
  if (process.substr(space + 1) != machine()) return false;
  std::ifstream file("/proc/" + process.substr(0, space) + "/stat");
  std::string line;
  if (!std::getline(file, line)) return true;
  // "NUMBER (NAME) STATE ...": Z, a zombie, until its parent has heard of its end.
  const size_t name_end = line.rfind(')');
  return name_end != std::string::npos && line.compare(name_end + 1, 2, " Z") == 0;
}

std::string program_identity() {
  std::vector<std::string> ids;
  dl_iterate_phdr(add_build_id, &ids);
  std::sort(ids.begin(), ids.end());
  std::string text = "torch " TORCH_VERSION ", builds";
  for (const std::string& id : ids) text += " " + id;
  return text;
}

}  // namespace qact::dist
