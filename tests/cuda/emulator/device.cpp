// Torch's CUDA device for a machine without one: two devices whose memory is the host's. Kernels of
// core/cuda run emulated (tests/core/cuda/emulator), and every operator of torch by the CPU's
// kernel, on tensors that share the memory of those it was given. So qact/ops/cuda runs as it is.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <cuda_runtime_api.h>
#include <torch/library.h>

#include <vector>

namespace qact::tests {
namespace {

constexpr c10::DeviceIndex kDevices = 2;
thread_local c10::DeviceIndex current = 0;

c10::Device with_index(c10::Device device) {
  return {c10::kCUDA, device.has_index() ? device.index() : current};
}

// --- what torch asks of a device

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return c10::kCUDA; }
  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device before = getDevice();
    current = device.index();
    return before;
  }
  c10::Device getDevice() const override { return {c10::kCUDA, current}; }
  void setDevice(c10::Device device) const override { current = device.index(); }
  void uncheckedSetDevice(c10::Device device) const noexcept override { current = device.index(); }
  c10::Stream getStream(c10::Device device) const override {
    return c10::Stream(c10::Stream::DEFAULT, with_index(device));
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    return getStream(stream.device());
  }
  c10::DeviceIndex deviceCount() const noexcept override { return kDevices; }
  // There is one stream: what is recorded has always been before what waits for it.
  void record(void**, const c10::Stream&, const c10::DeviceIndex,
              const c10::EventFlag) const override {}
  void block(void*, const c10::Stream&) const override {}
};
C10_REGISTER_GUARD_IMPL(CUDA, Guard);

struct Hooks final : at::CUDAHooksInterface {
  explicit Hooks(at::CUDAHooksArgs) {}
  void init() const override {}
  bool hasCUDA() const override { return true; }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  int getNumGPUs() const override { return kDevices; }
  c10::DeviceIndex deviceCount() const override { return kDevices; }
  c10::DeviceIndex current_device() const override { return current; }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex) const override {
    return at::detail::getDefaultCPUGenerator();
  }
  c10::Allocator* getCUDADeviceAllocator() const override {
    return c10::cuda::CUDACachingAllocator::get();
  }
  void deviceSynchronize(c10::DeviceIndex) const override { emulator::device().synchronize(); }
};
using at::CUDAHooksRegistry;
using at::RegistererCUDAHooksRegistry;
C10_REGISTER_CLASS(CUDAHooksRegistry, CUDAHooks, Hooks)

// --- memory

// The host's, said to lie on the device; `keeper` owns it. Kernels still to run may use it.
c10::DataPtr on_device(void* data, void* keeper, c10::DeleterFnPtr release, c10::Device device) {
  return {data, keeper, release, with_index(device)};
}

struct Memory final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    c10::DataPtr host = c10::GetCPUAllocator()->allocate(bytes);
    void* data = host.get();
    return on_device(
        data, new c10::DataPtr(std::move(host)),
        [](void* keeper) {
          emulator::device().synchronize();
          delete static_cast<c10::DataPtr*>(keeper);
        },
        c10::kCUDA);
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    emulator::device().synchronize();
    default_copy_data(to, from, bytes);
  }
};

// --- torch's own operators

void release_storage(void* keeper) {
  emulator::device().synchronize();
  delete static_cast<c10::Storage*>(keeper);
}

// A tensor of the same memory on the other kind of device.
at::Tensor like(const at::Tensor& tensor, c10::Storage storage, c10::DispatchKey key) {
  at::Tensor out = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(key), tensor.dtype());
  out.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides(),
                                                   tensor.storage_offset());
  return out;
}

c10::DataPtr data_of(const c10::Storage& storage, c10::Device device) {
  return {const_cast<void*>(storage.data()), new c10::Storage(storage), release_storage, device};
}

c10::Storage shared(const c10::Storage& of, c10::Device device, c10::Allocator* allocator) {
  return {c10::Storage::use_byte_size_t(), of.nbytes(), data_of(of, device), allocator,
          /*resizable=*/true};
}

// One call of an operator: its tensors become the CPU's, its results the device's.
class Call {
 public:
  Call(const c10::OperatorHandle& op, torch::jit::Stack& stack)
      : op_(op), stack_(stack), arguments_(op.schema().arguments().size()) {}

  void run() {
    emulator::device().synchronize();
    for (auto value = stack_.end() - arguments_; value != stack_.end(); ++value) enter(*value);
    op_.callBoxed(&stack_);
    for (const Alias& a : aliases_) follow(a);
    for (auto value = stack_.end() - op_.schema().returns().size(); value != stack_.end();
         ++value) {
      leave(*value);
    }
  }

 private:
  struct Alias {
    at::Tensor given, alias;
  };

  void enter(c10::IValue& value) {
    if (value.isDevice() && value.toDevice().is_cuda()) {
      device_ = with_index(value.toDevice());
      value = c10::Device(c10::kCPU);
    } else if (value.isTensor()) {
      value = host(value.toTensor());
    } else if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(host(tensor));
      value = list;
    } else if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> list;
      for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorList()) {
        list.push_back(tensor ? std::optional(host(*tensor)) : std::nullopt);
      }
      value = list;
    }
  }

  at::Tensor host(const at::Tensor& tensor) {
    if (!tensor.defined() || !tensor.is_cuda()) return tensor;
    if (!device_) device_ = tensor.device();
    const c10::Storage on_host = shared(tensor.storage(), c10::kCPU, c10::GetCPUAllocator());
    aliases_.push_back({tensor, like(tensor, on_host, c10::DispatchKey::CPU)});
    return aliases_.back().alias;
  }

  // What the operator did to a tensor beside its values: out= may resize it.
  static void follow(const Alias& a) {
    c10::TensorImpl* given = a.given.unsafeGetTensorImpl();
    if (a.alias.storage().data() != a.given.storage().data()) {
      const c10::Storage storage = a.given.storage();
      storage.set_nbytes(a.alias.storage().nbytes());
      storage.set_data_ptr_noswap(data_of(a.alias.storage(), a.given.device()));
    }
    if (a.alias.sizes() != a.given.sizes() || a.alias.strides() != a.given.strides()) {
      given->set_sizes_and_strides(a.alias.sizes(), a.alias.strides());
    }
  }

  void leave(c10::IValue& value) const {
    if (value.isTensor()) {
      value = device(value.toTensor());
    } else if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(device(tensor));
      value = list;
    }
  }

  at::Tensor device(const at::Tensor& tensor) const {
    if (!tensor.defined() || !device_) return tensor;
    for (const Alias& a : aliases_) {
      if (tensor.is_same(a.alias)) return a.given;
    }
    for (const Alias& a : aliases_) {  // a view
      if (tensor.storage().is_alias_of(a.alias.storage())) {
        return like(tensor, a.given.storage(), c10::DispatchKey::CUDA);
      }
    }
    for (const c10::IValue& kept : given_) {  // the CPU's tensor that was written to
      if (kept.isTensor() && tensor.is_same(kept.toTensor())) return tensor;
    }
    return like(tensor, shared(tensor.storage(), *device_, c10::cuda::CUDACachingAllocator::get()),
                c10::DispatchKey::CUDA);
  }

  const c10::OperatorHandle& op_;
  torch::jit::Stack& stack_;
  const std::ptrdiff_t arguments_;
  const std::vector<c10::IValue> given_{stack_.end() - arguments_, stack_.end()};
  std::vector<Alias> aliases_;
  std::optional<c10::Device> device_;
};

void by_the_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) { Call(op, *stack).run(); }

TORCH_LIBRARY_IMPL(_, CUDA, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&by_the_cpu>());
}
// One kernel serves all devices there, and looks for the device's own loops.
TORCH_LIBRARY_IMPL(aten, CUDA, m) {
  m.impl("copy_", torch::CppFunction::makeFromBoxedFunction<&by_the_cpu>());
}

}  // namespace
}  // namespace qact::tests

c10::Allocator* c10::cuda::CUDACachingAllocator::get() {
  static qact::tests::Memory memory;
  return &memory;
}

// What torch's stable ABI for CUDA has: the Python package's operators ask for it.
extern "C" int aoti_torch_get_current_cuda_stream(int, void** stream) {
  *stream = nullptr;
  return 0;
}
