#include "runtime/backends/cpu/component/code_generator.hpp"

#include <mutex>
#include <string>

#include "clang/Basic/CodeGenOptions.h"
#include "clang/Basic/TargetInfo.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"

#include "runtime/backends/cpu/component/llvm_versions.hpp"

namespace bilogp::clang_component {
namespace {

llvm::CodeGenOptLevel code_generation_level(unsigned level) {
  switch (level) {
  case 0:
    return llvm::CodeGenOptLevel::None;
  case 1:
    return llvm::CodeGenOptLevel::Less;
  case 2:
    return llvm::CodeGenOptLevel::Default;
  default:
    return llvm::CodeGenOptLevel::Aggressive;
  }
}

llvm::OptimizationLevel pass_level(unsigned level) {
  switch (level) {
  case 0:
    return llvm::OptimizationLevel::O0;
  case 1:
    return llvm::OptimizationLevel::O1;
  case 2:
    return llvm::OptimizationLevel::O2;
  default:
    return llvm::OptimizationLevel::O3;
  }
}

} // namespace

void initialize_targets() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmParser(); // for inline assembly
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmParser();
    LLVMInitializeAArch64AsmPrinter();
  });
}

std::unique_ptr<llvm::TargetMachine> target_machine(const clang::CompilerInstance& compiler, Diagnostics& diagnostics) {
  const clang::TargetOptions& target = compiler.getTarget().getTargetOpts();
  const llvm::Triple triple(target.Triple);
  std::string why;
  const llvm::Target* found = look_up_target(triple, why);
  if (found == nullptr) {
    diagnostics.add_error({}, why);
    return nullptr;
  }
  std::string features;
  for (const std::string& feature : target.Features) features += (features.empty() ? "" : ",") + feature;
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict; // a product and a sum are never joined behind our back
  options.FunctionSections = true;                    // so that linking drops what no entry point reaches
  options.DataSections = true;
  return make_target_machine(*found, triple, target.CPU, features, options,
                             code_generation_level(compiler.getCodeGenOpts().OptimizationLevel));
}

void optimize(llvm::Module& module, const clang::CompilerInstance& compiler, llvm::TargetMachine& machine) {
  const clang::CodeGenOptions& options = compiler.getCodeGenOpts();
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = options.VectorizeLoop;
  tuning.SLPVectorization = options.VectorizeSLP;
  llvm::PassBuilder builder(&machine, tuning);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::TargetLibraryInfoImpl library(machine.getTargetTriple());
  library.disableAllFunctions(); // there is no library under a kernel
  functions.registerPass([&] { return llvm::TargetLibraryAnalysis(library); });
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  const llvm::OptimizationLevel level = pass_level(options.OptimizationLevel);
  llvm::ModulePassManager passes = level == llvm::OptimizationLevel::O0 ? builder.buildO0DefaultPipeline(level)
                                                                        : builder.buildPerModuleDefaultPipeline(level);
  passes.run(module, modules);
}

ObjectBytes generate_object(llvm::Module& module, llvm::TargetMachine& machine) {
  ObjectBytes object;
  llvm::raw_svector_ostream stream(object);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::ObjectFile)) return {};
  passes.run(module);
  return object;
}

} // namespace bilogp::clang_component
