// Autograd functions in C++: saved tensors and values, several outputs, writing in place, double backward.
#include <torch/extension.h>

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Cube : torch::autograd::Function<Cube> {
  static constexpr bool is_traceable = true;
  static torch::Tensor forward(AutogradContext* ctx, const torch::Tensor& x, double scale) {
    ctx->save_for_backward({x});
    ctx->saved_data["scale"] = scale;
    ctx->saved_data["power"] = 3;
    ctx->saved_data["dims"] = std::vector<int64_t>{0, 1};
    return x.pow(3) * scale;
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    auto x = ctx->get_saved_variables()[0];
    TORCH_CHECK(ctx->saved_data["dims"].toIntVector() == std::vector<int64_t>({0, 1}));
    c10::SymInt power = ctx->saved_data["power"].toSymInt();
    return {grads[0] * x * x * power * ctx->saved_data["scale"].toDouble(), torch::Tensor()};
  }
};

struct SumAndProduct : torch::autograd::Function<SumAndProduct> {
  static variable_list forward(AutogradContext* ctx, at::TensorList xs, std::optional<torch::Tensor> weight,
                               std::vector<torch::Tensor> others, const char* how) {
    TORCH_CHECK(std::string(how) == "both" && others.size() == 1);
    ctx->save_for_backward(xs.vec());
    ctx->saved_data["weighted"] = weight.has_value();
    auto argmax = xs[0].argmax();
    ctx->mark_non_differentiable({argmax});
    ctx->set_materialize_grads(false);
    return {xs[0] + xs[1], xs[0] * xs[1], argmax};
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    auto saved = ctx->get_saved_variables();
    TORCH_CHECK(grads.size() == 3 && !grads[2].defined(), "an output without gradient got one");
    auto zero = torch::zeros_like(saved[0]);
    auto sum = grads[0].defined() ? grads[0] : zero, product = grads[1].defined() ? grads[1] : zero;
    torch::Tensor first, second;
    if (ctx->needs_input_grad(0)) first = sum + product * saved[1];
    if (ctx->needs_input_grad(1)) second = sum + product * saved[0];
    return {first, second, torch::Tensor(), torch::Tensor(), torch::Tensor()};
  }
};

struct DoubleInPlace : torch::autograd::Function<DoubleInPlace> {
  static torch::Tensor forward(AutogradContext* ctx, torch::Tensor x) {
    torch::AutoGradMode off(false);
    x.mul_(2);
    ctx->mark_dirty({x});
    return x;
  }
  static variable_list backward(AutogradContext*, variable_list grads) { return {grads[0] * 2}; }
};

template <bool traceable>
struct Shift : torch::autograd::Function<Shift<traceable>> {
  static constexpr bool is_traceable = traceable;
  static torch::Tensor forward(AutogradContext* ctx, torch::Tensor x, int64_t n, bool named) {
    ctx->saved_data["n"] = n;
    if (named) ctx->saved_data["name"] = "shift";
    return x + n;
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    return {grads[0] + ctx->saved_data["n"].toSymInt(), torch::Tensor(), torch::Tensor()};
  }
};

struct Wrong : torch::autograd::Function<Wrong> {
  static torch::Tensor forward(AutogradContext*, torch::Tensor x, torch::Tensor y) { return x + y; }
  static variable_list backward(AutogradContext*, variable_list grads) { return {grads[0]}; }
};

torch::Tensor gradient_of_square(torch::Tensor x) {
  auto leaf = x.detach().requires_grad_();
  auto y = (leaf * leaf).sum();
  return torch::autograd::grad({y}, {leaf})[0];
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("cube", [](torch::Tensor x, double scale) { return Cube::apply(x, scale); }, py::arg("x"), py::arg("scale") = 1.0);
  m.def("sum_and_product", [](std::vector<torch::Tensor> xs, std::optional<torch::Tensor> w) {
    return SumAndProduct::apply(at::TensorList(xs), w, std::vector<torch::Tensor>{xs[0]}, "both");
  });
  m.def("double_in_place", [](torch::Tensor x) { return DoubleInPlace::apply(x); });
  m.def("shift", [](torch::Tensor x, int64_t n, bool traceable, bool named) {
    return traceable ? Shift<true>::apply(x, n, named) : Shift<false>::apply(x, n, named);
  });
  m.def("wrong", [](torch::Tensor x, torch::Tensor y) { return Wrong::apply(x, y); });
  m.def("gradient_of_square", &gradient_of_square);
}
