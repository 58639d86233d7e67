// The rest of the surface: numbers, options, indexing, dispatch over element types, errors, classes, enumerations.
#include <torch/extension.h>

using namespace torch::indexing;

template <class T>
static void fill_with_square(torch::Tensor& out, const torch::Tensor& x) {
  for (int64_t i = 0; i < x.numel(); i++) out.data_ptr<T>()[i] = x.data_ptr<T>()[i] * x.data_ptr<T>()[i];
}
torch::Tensor square(torch::Tensor x) {
  auto in = x.contiguous();
  auto out = torch::empty_like(in);
  AT_DISPATCH_ALL_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "square", [&] { fill_with_square<scalar_t>(out, in); });
  return out;
}
torch::Tensor only_floats(torch::Tensor x) {
  return AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "only_floats", [&] { return x * static_cast<scalar_t>(2); });
}
std::string facts(torch::Tensor x) {
  return c10::str(x.sizes(), " ", x.strides(), " ", x.dim(), " ", x.numel(), " ", x.scalar_type(), " ", x.dtype(), " ",
                  x.device(), " ", x.is_contiguous(), x.requires_grad(), x.is_floating_point(), x.defined(), " ", x.nbytes());
}
torch::Tensor factories() {
  torch::manual_seed(0);
  auto o = torch::TensorOptions().dtype(torch::kFloat64).requires_grad(false);
  auto all = torch::zeros({2, 3}, o) + torch::ones({2, 3}, torch::kFloat64) + torch::full({2, 3}, 2.5, o) +
             torch::arange(6, torch::kFloat64).view({2, -1}) + torch::eye(2, 3, o) + torch::rand({2, 3}, o) * 0 +
             torch::tensor({1, 2, 3}) + torch::tensor(std::vector<double>{1, 2, 3}) + torch::zeros_like(torch::randn({2, 3}));
  return all + torch::tensor(0.5) + torch::linspace(0, 0, 3) + torch::scalar_tensor(1);
}
torch::Tensor indexed(torch::Tensor x) {
  auto y = x.clone();
  y[0] = 7;
  y.index_put_({1, Slice(None, 2)}, -1.0);
  y[2][1] = x[0][0] + 100;
  return torch::cat({y.index({"...", 0}).view(-1), y.index({Slice(1, None), 1}), y.select(0, 2), y.index({y > 50})});
}
std::tuple<torch::Tensor, torch::Tensor> sorted(torch::Tensor x) {
  auto [values, places] = torch::sort(x, /*dim=*/-1, /*descending=*/true);
  auto [largest, at] = x.max(0);
  TORCH_CHECK((largest == values[0]).all().item<bool>() && at.item<int64_t>() == places[0].item<int64_t>());
  return {values, places};
}
torch::Tensor arithmetic(torch::Tensor x, torch::Tensor y) {
  auto z = x * c10::Half(0) + 2 * x - y / 4.0 + (1 - x) * 3 + 1.0 / (y + 5) + torch::add(x, y, 10) + x.sub(y, /*alpha=*/2) + -x;
  z += 1, z *= y, z -= x, z /= 2;
  auto mask = (x < y) | (x == y) & ~(y > 3);
  return torch::where(mask, z, at::call("neg", z)).clamp_min(-50).sum({0}, /*keepdim=*/true).softmax(-1);
}
torch::Tensor blob() {
  static float data[6] = {1, 2, 3, 4, 5, 6};
  return torch::from_blob(data, {2, 3}).clone() + torch::from_blob(data, {2, 3}, {1, 2}, torch::kFloat32);
}
int freed = 0;
torch::Tensor owned() {
  auto* data = new double[3]{1, 2, 3};
  return torch::from_blob(data, {3}, [](void* p) { delete[] static_cast<double*>(p), freed++; }, torch::kDouble);
}
void fails(int how) {
  if (how == 0) TORCH_CHECK(how == 1, "how is ", how, ", not ", 1);
  if (how == 1) TORCH_CHECK(how == 0);
  if (how == 2) throw std::runtime_error("a plain one");
  if (how == 3) throw std::out_of_range("out of range");
  if (how == 4) TORCH_CHECK_VALUE(false, "a bad value");
  if (how == 5) AT_ERROR("an old ", "error");
  if (how == 6) torch::ones({2, 3}).mm(torch::ones({2, 3}));
  if (how == 7) torch::ones({2}).data_ptr<double>();
  if (how == 8) torch::Tensor().sizes();
  if (how == 10) torch::ones({2}).sum({}, true);
  if (how == 9) TORCH_CHECK_NOT_IMPLEMENTED(false, "later");
}
std::string caught() {
  try {
    torch::ones({2, 3}).mm(torch::ones({2, 3}));
  } catch (const c10::Error& e) {
    return e.what();
  }
  return "";
}

struct Counter {
  int64_t count = 0;
  std::string name;
  Counter(std::string n, int64_t start) : count(start), name(std::move(n)) {}
  int64_t add(int64_t n) { return count += n; }
  torch::Tensor scaled(const torch::Tensor& x) const { return x * count; }
};
enum class Mode { Slow, Fast };

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("square", &square);
  m.def("only_floats", &only_floats);
  m.def("facts", &facts);
  m.def("factories", &factories);
  m.def("indexed", &indexed);
  m.def("sorted", &sorted);
  m.def("arithmetic", &arithmetic);
  m.def("blob", &blob);
  m.def("owned", &owned);
  m.def("freed", [] { return freed; });
  m.def("fails", &fails, py::arg("how"));
  m.def("caught", &caught);
  m.def("overloaded", [](int64_t x) { return "int " + std::to_string(x); });
  m.def("overloaded", [](const std::string& x) { return "str " + x; });
  m.def("overloaded", [](torch::Tensor x, std::vector<double> v) { return "tensor " + std::to_string(v.size()); });
  m.def("with_rest", [](int a, py::args rest, py::kwargs named) { return py::make_tuple(a, rest, named); });
  m.def("mapped", [](std::map<std::string, double> values, std::function<double(double)> f) {
    for (auto& [name, v] : values) v = f(v);
    return values;
  });
  m.def("released", [](int64_t n) { return n + 1; }, py::call_guard<py::gil_scoped_release>());
  m.def("hooked", [](torch::Tensor x) { x.register_hook([](torch::Tensor g) { return g * 10; }); });
  m.def("unrecorded", [](torch::Tensor x) {
    torch::NoGradGuard guard;
    return x * 2;
  });
  m.attr("answer") = 42;
  py::class_<Counter, std::shared_ptr<Counter>>(m, "Counter", "counts")
      .def(py::init<std::string, int64_t>(), py::arg("name"), py::arg("start") = 0)
      .def("add", &Counter::add, py::arg("n") = 1)
      .def("scaled", &Counter::scaled)
      .def("__repr__", [](const Counter& c) { return "<Counter " + c.name + ">"; })
      .def_readwrite("count", &Counter::count)
      .def_readonly("name", &Counter::name)
      .def_property_readonly("twice", [](const Counter& c) { return 2 * c.count; })
      .def_static("make", [](std::string n) { return std::make_shared<Counter>(n, 5); });
  m.def("count_of", [](const Counter& c) { return c.count; });
  py::enum_<Mode>(m, "Mode").value("Slow", Mode::Slow).value("Fast", Mode::Fast);
  m.def("is_fast", [](Mode mode) { return mode == Mode::Fast; });
  auto inner = m.def_submodule("inner", "more");
  inner.def("one", [] { return 1; });
}
