#include "compiler/codegen/llvm/module.h"

#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Target/TargetOptions.h>

#include <mutex>

#include "compiler/codegen/llvm/disassemble.h"
#include "compiler/codegen/llvm/kernel_emitter.h"
#include "compiler/codegen/llvm/machine.h"
#include "compiler/codegen/llvm/target_traits.h"
#include "runtime/base/error.h"

namespace tensormill::codegen {
namespace {

/// LLVM's registry of targets is the library's own global; it is filled once.
void register_targets() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeX86Disassembler();
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
    LLVMInitializeAArch64Disassembler();
  });
}

void set_attributes(llvm::Module& module, const TargetTraits& traits) {
  for (llvm::Function& function : module) {
    if (function.isDeclaration()) continue;
    function.addFnAttr(llvm::Attribute::NoUnwind);
    function.addFnAttr("target-cpu", traits.cpu);
    function.addFnAttr("target-features", traits.features);
    function.addFnAttr("prefer-vector-width", std::to_string(traits.vector_bits));
    function.addFnAttr("no-builtins");
  }
}

/// What -O2 does for the loops that kernels are made of: addresses and invariants out of loops, small loops
/// written out, loads and arithmetic once. What it has besides changes nothing here, and takes as long: a
/// module has no calls to inline and no globals but tables, vectors and blocks belong to the schedule.
constexpr const char* kPasses =
    "function<eager-inv>("
    "sroa<modify-cfg>,early-cse<memssa>,simplifycfg,instcombine<no-verify-fixpoint>,"
    "loop-mssa(loop-instsimplify,loop-simplifycfg,licm,loop-rotate,licm),"
    "loop(indvars,loop-deletion,loop-unroll-full),"
    "gvn,instcombine<no-verify-fixpoint>,simplifycfg,dse,loop-mssa(licm),"
    "loop-unroll<O2>,early-cse,instcombine<no-verify-fixpoint>,simplifycfg,tailcallelim),"
    "globaldce";

void optimize(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  llvm::TargetLibraryInfoImpl library{llvm::Triple(module.getTargetTriple())};
  library.disableAllFunctions();
  functions.registerPass([&] { return llvm::TargetLibraryAnalysis(library); });
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  llvm::ModulePassManager passes;
  llvm::Error error = builder.parsePassPipeline(passes, kPasses);
  TM_CHECK(!error, llvm::toString(std::move(error)));
  passes.run(module, modules);
}

template <typename T>
std::string text_of(const T& thing) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  thing.print(stream, nullptr);
  return text;
}

/// A kernel must be closed: an undefined symbol would be a call into a library that packages do not have.
void check_closed(const Object& object) {
  auto file = llvm::object::ObjectFile::createObjectFile(llvm::MemoryBufferRef(object.bytes, object.symbol));
  TM_CHECK(bool(file), llvm::toString(file.takeError()));
  for (const llvm::object::SymbolRef& symbol : (*file)->symbols()) {
    auto flags = symbol.getFlags();
    auto name = symbol.getName();
    TM_CHECK(bool(flags) && bool(name), "kernel " + object.symbol + ": unreadable symbol table");
    TM_CHECK((*flags & llvm::object::SymbolRef::SF_Undefined) == 0 || name->empty(),
             "kernel " + object.symbol + ": code generation left a call to " + name->str());
  }
}

}  // namespace

std::unique_ptr<llvm::TargetMachine> make_machine(const TargetTraits& traits) {
  register_targets();
  std::string message;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(traits.triple, message);
  if (target == nullptr) {
    throw Error(ErrorCode::kNotSupported, "target " + traits.triple + " is not in this LLVM: " + message);
  }
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  std::unique_ptr<llvm::TargetMachine> machine(
      target->createTargetMachine(traits.triple, traits.cpu, traits.features, options, llvm::Reloc::PIC_,
                                  llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default));
  TM_CHECK(machine != nullptr, "no target machine for " + traits.triple);
  return machine;
}

std::string write_object(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  llvm::TargetLibraryInfoImpl library{llvm::Triple(module.getTargetTriple())};
  library.disableAllFunctions();
  passes.add(new llvm::TargetLibraryInfoWrapperPass(library));  // owned by the pass manager
  TM_CHECK(!machine.addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::ObjectFile),
           "this target cannot write objects");
  passes.run(module);
  return {bytes.data(), bytes.size()};
}

Object emit_object(const te::Function& function, const target::Target& target, const EmitOptions& options) {
  const TargetTraits traits = traits_of(target);
  const std::unique_ptr<llvm::TargetMachine> machine = make_machine(traits);
  llvm::LLVMContext context;
  llvm::Module module("kernel", context);
  module.setTargetTriple(machine->getTargetTriple().str());
  module.setDataLayout(machine->createDataLayout());
  module.setPICLevel(llvm::PICLevel::BigPIC);

  KernelEmitter(function, traits, module).emit();
  set_attributes(module, traits);
  std::string message;
  llvm::raw_string_ostream stream(message);
  TM_CHECK(!llvm::verifyModule(module, &stream),
           "kernel " + function.name + ": " + message + text_of(module));
  optimize(module, *machine);

  Object object;
  object.symbol = function.name;
  if (options.keep_ir) object.ir_text = text_of(module);
  object.bytes = write_object(module, *machine);
  check_closed(object);
  if (options.keep_assembly) object.assembly_text = disassemble(object.bytes, *machine);
  return object;
}

}  // namespace tensormill::codegen
