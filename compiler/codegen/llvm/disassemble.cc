#include "compiler/codegen/llvm/disassemble.h"

#include <llvm/MC/MCAsmInfo.h>
#include <llvm/MC/MCContext.h>
#include <llvm/MC/MCDisassembler/MCDisassembler.h>
#include <llvm/MC/MCInst.h>
#include <llvm/MC/MCInstPrinter.h>
#include <llvm/MC/MCInstrAnalysis.h>
#include <llvm/MC/MCInstrInfo.h>
#include <llvm/MC/MCRegisterInfo.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "runtime/base/error.h"

namespace tensormill::codegen {
namespace {

template <typename T>
T value_of(llvm::Expected<T> expected) {
  TM_CHECK(bool(expected), llvm::toString(expected.takeError()));
  return std::move(*expected);
}

std::string hex(uint64_t value) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream.write_hex(value);
  return text;
}

struct Instruction {
  uint64_t address = 0;
  uint64_t size = 0;
  llvm::MCInst inst;
  uint64_t target = 0;
  bool has_target = false;
};

/// Decodes and prints instructions of one machine.
class Reader {
public:
  explicit Reader(const llvm::TargetMachine& machine)
      : machine_(machine),
        context_(machine.getTargetTriple(), machine.getMCAsmInfo(), machine.getMCRegisterInfo(),
                 machine.getMCSubtargetInfo()) {
    const llvm::Target& target = machine.getTarget();
    decoder_.reset(target.createMCDisassembler(*machine.getMCSubtargetInfo(), context_));
    printer_.reset(target.createMCInstPrinter(
        machine.getTargetTriple(), machine.getMCAsmInfo()->getAssemblerDialect(), *machine.getMCAsmInfo(),
        *machine.getMCInstrInfo(), *machine.getMCRegisterInfo()));
    analysis_.reset(target.createMCInstrAnalysis(machine.getMCInstrInfo()));
    TM_CHECK(decoder_ != nullptr && printer_ != nullptr && analysis_ != nullptr,
             "no disassembler for " + machine.getTargetTriple().str());
  }

  std::vector<Instruction> decode(llvm::ArrayRef<uint8_t> bytes) const {
    std::vector<Instruction> list;
    for (uint64_t at = 0; at < bytes.size();) {
      Instruction row;
      row.address = at;
      const auto status = decoder_->getInstruction(row.inst, row.size, bytes.slice(at), at, llvm::nulls());
      TM_CHECK(status == llvm::MCDisassembler::Success && row.size > 0,
               "machine code at byte " + std::to_string(at) + " cannot be decoded");
      const bool jumps = analysis_->isBranch(row.inst) || analysis_->isCall(row.inst);
      row.has_target = jumps && analysis_->evaluateBranch(row.inst, at, row.size, row.target);
      at += row.size;
      list.push_back(std::move(row));
    }
    return list;
  }

  /// The instruction's text; where it leads to is its last operand, which `label` takes the place of.
  std::string print(const Instruction& row, const std::string& label) const {
    std::string text;
    llvm::raw_string_ostream stream(text);
    printer_->printInst(&row.inst, row.address, "", *machine_.getMCSubtargetInfo(), stream);
    if (label.empty()) return text;
    const size_t last = text.find_last_of(",\t ");
    return text.substr(0, last + 1) + label;
  }

private:
  const llvm::TargetMachine& machine_;
  llvm::MCContext context_;
  std::unique_ptr<llvm::MCDisassembler> decoder_;
  std::unique_ptr<llvm::MCInstPrinter> printer_;
  std::unique_ptr<const llvm::MCInstrAnalysis> analysis_;
};

/// "symbol+addend" by offset in `section`.
std::map<uint64_t, std::string> relocations_of(const llvm::object::ELFObjectFileBase& file,
                                               const llvm::object::SectionRef& section) {
  std::map<uint64_t, std::string> relocations;
  for (const llvm::object::SectionRef& table : file.sections()) {
    const auto target = value_of(table.getRelocatedSection());
    if (target == file.section_end() || *target != section) continue;
    for (const llvm::object::RelocationRef& relocation : table.relocations()) {
      const auto symbol = relocation.getSymbol();
      if (symbol == file.symbol_end()) continue;
      std::string name = value_of(symbol->getName()).str();
      if (name.empty()) name = value_of(value_of(symbol->getSection())->getName()).str();
      const int64_t addend = value_of(llvm::object::ELFRelocationRef(relocation).getAddend());
      if (addend != 0) name += (addend > 0 ? "+" : "") + std::to_string(addend);
      relocations.emplace(relocation.getOffset(), std::move(name));
    }
  }
  return relocations;
}

/// Names of the functions of `section`, by address.
std::map<uint64_t, std::string> functions_of(const llvm::object::ObjectFile& file,
                                             const llvm::object::SectionRef& section) {
  std::map<uint64_t, std::string> functions;
  for (const llvm::object::SymbolRef& symbol : file.symbols()) {
    if (value_of(symbol.getType()) != llvm::object::SymbolRef::ST_Function) continue;
    if (*value_of(symbol.getSection()) == section)
      functions.emplace(value_of(symbol.getAddress()), value_of(symbol.getName()).str());
  }
  return functions;
}

void print_code(const llvm::object::ELFObjectFileBase& file, const llvm::object::SectionRef& section,
                const Reader& reader, std::string& text) {
  const std::map<uint64_t, std::string> functions = functions_of(file, section);
  const std::map<uint64_t, std::string> relocations = relocations_of(file, section);
  const std::vector<Instruction> code =
      reader.decode(llvm::arrayRefFromStringRef(value_of(section.getContents())));
  std::map<uint64_t, std::string> labels = functions;
  for (const Instruction& row : code) {
    if (row.has_target) labels.try_emplace(row.target, ".L" + hex(row.target));
  }
  for (const Instruction& row : code) {
    const auto label = labels.find(row.address);
    if (label != labels.end()) text += (functions.count(row.address) ? "\n" : "") + label->second + ":\n";
    const auto relocation = relocations.lower_bound(row.address);
    const bool relocated = relocation != relocations.end() && relocation->first < row.address + row.size;
    text += reader.print(row, row.has_target && !relocated ? labels.at(row.target) : "");
    if (relocated) text += "\t# " + relocation->second;
    text += '\n';
  }
}

/// Constants, as 32-bit words.
void print_data(const llvm::object::SectionRef& section, std::string& text) {
  const llvm::StringRef bytes = value_of(section.getContents());
  text += "\n" + value_of(section.getName()).str() + ":";
  for (size_t at = 0; at < bytes.size(); at += 4) {
    uint32_t word = 0;
    for (size_t i = 0; i < 4 && at + i < bytes.size(); ++i)
      word |= uint32_t{static_cast<uint8_t>(bytes[at + i])} << (8 * i);
    text += (at % 32 == 0 ? "\n\t.long\t0x" : ", 0x") + hex(word);
  }
  text += '\n';
}

}  // namespace

std::string disassemble(const std::string& object, const llvm::TargetMachine& machine) {
  const auto file =
      value_of(llvm::object::ObjectFile::createObjectFile(llvm::MemoryBufferRef(object, "kernel")));
  const auto* elf = llvm::dyn_cast<llvm::object::ELFObjectFileBase>(file.get());
  TM_CHECK(elf != nullptr, "the object is no ELF file");
  const Reader reader(machine);
  std::string text;
  for (const llvm::object::SectionRef& section : elf->sections()) {
    if (section.isText()) print_code(*elf, section, reader, text);
  }
  for (const llvm::object::SectionRef& section : elf->sections()) {
    if (section.isData() && !section.isText() && section.getSize() > 0) print_data(section, text);
  }
  return text;
}

}  // namespace tensormill::codegen
