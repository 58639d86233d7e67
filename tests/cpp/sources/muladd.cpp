// a * b + c as an operator: a schema, a kernel for the CPU that reads memory, one that writes its output in place.
#include <torch/library.h>
#include <torch/torch.h>

namespace example {

at::Tensor muladd(const at::Tensor& a, const at::Tensor& b, double c) {
  TORCH_CHECK(a.sizes() == b.sizes(), "sizes differ: ", a.sizes(), " and ", b.sizes());
  TORCH_CHECK(a.dtype() == at::kFloat);
  TORCH_CHECK(b.dtype() == at::kFloat);
  TORCH_INTERNAL_ASSERT(a.device().type() == at::DeviceType::CPU);
  at::Tensor a_contig = a.contiguous(), b_contig = b.contiguous();
  at::Tensor result = torch::empty(a_contig.sizes(), a_contig.options());
  const float *pa = a_contig.data_ptr<float>(), *pb = b_contig.const_data_ptr<float>();
  float* out = result.mutable_data_ptr<float>();
  at::parallel_for(0, result.numel(), 1024, [&](int64_t from, int64_t to) {
    for (int64_t i = from; i < to; i++) out[i] = pa[i] * pb[i] + c;
  });
  return result;
}

void add_out(const at::Tensor& a, const at::Tensor& b, at::Tensor& out) {
  TORCH_CHECK(out.is_contiguous());
  auto x = a.accessor<float, 1>(), y = b.accessor<float, 1>();
  auto z = out.accessor<float, 1>();
  for (int64_t i = 0; i < x.size(0); i++) z[i] = x[i] + y[i];
}

at::Tensor scaled(const at::Tensor& x, const std::optional<at::Tensor>& bias, at::IntArrayRef dims, bool twice,
                  const std::string& how, const at::Scalar& by, std::optional<at::ScalarType> dtype) {
  auto y = dims.empty() ? x.sum() : x.sum(dims);
  if (bias) y = y + *bias;
  if (twice) y = y * 2;
  TORCH_CHECK_VALUE(how == "mul" || how == "add", "how must be 'mul' or 'add', got '", how, "'");
  y = how == "mul" ? y * by : y + by;
  return dtype ? y.to(*dtype) : y;
}

std::tuple<at::Tensor, int64_t> counted(at::TensorList xs) { return {at::stack(xs), static_cast<int64_t>(xs.size())}; }

TORCH_LIBRARY(example_cpp, m) {
  m.def("muladd(Tensor a, Tensor b, float c) -> Tensor");
  m.def("add_out(Tensor a, Tensor b, Tensor(a!) out) -> ()");
  m.def("scaled(Tensor x, Tensor? bias=None, int[] dims=[], *, bool twice=False, str how='mul', Scalar by=1, "
        "ScalarType? dtype=None) -> Tensor", scaled);
  m.def("counted", counted);
}
TORCH_LIBRARY_IMPL(example_cpp, CPU, m) {
  m.impl("muladd", &muladd);
  m.impl("add_out", TORCH_FN(add_out));
}

}  // namespace example
