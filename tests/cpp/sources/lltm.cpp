// A recurrent cell with a forward and a backward written in tensor functions, bound by name.
#include <torch/extension.h>

#include <vector>

#define CHECK_2D(x) TORCH_CHECK(x.dim() == 2, #x " must have two dimensions, got ", x.sizes())

static torch::Tensor slope_of_sigmoid(torch::Tensor z) {
  auto s = torch::sigmoid(z);
  return (1 - s) * s;
}
static torch::Tensor slope_of_tanh(torch::Tensor z) { return 1 - z.tanh().pow(2); }
static torch::Tensor slope_of_elu(torch::Tensor z, torch::Scalar alpha = 1.0) {
  auto e = z.exp();
  auto mask = (alpha * (e - 1)) < 0;
  return (z > 0).type_as(z) + mask.type_as(z) * (alpha * e);
}

std::vector<at::Tensor> cell_forward(torch::Tensor input, torch::Tensor weights, torch::Tensor bias, torch::Tensor old_h,
                                     torch::Tensor old_cell) {
  CHECK_2D(input);
  auto X = torch::cat({old_h, input}, /*dim=*/1);
  auto gate_weights = torch::addmm(bias, X, weights.transpose(0, 1));
  auto gates = gate_weights.chunk(3, /*dim=*/1);
  auto input_gate = torch::sigmoid(gates[0]);
  auto output_gate = torch::sigmoid(gates[1]);
  auto candidate = torch::elu(gates[2], /*alpha=*/1.0);
  auto new_cell = old_cell + candidate * input_gate;
  auto new_h = torch::tanh(new_cell) * output_gate;
  return {new_h, new_cell, input_gate, output_gate, candidate, X, gate_weights};
}

std::vector<torch::Tensor> cell_backward(torch::Tensor grad_h, torch::Tensor grad_cell, torch::Tensor new_cell,
                                         torch::Tensor input_gate, torch::Tensor output_gate, torch::Tensor candidate,
                                         torch::Tensor X, torch::Tensor gate_weights, torch::Tensor weights) {
  auto d_output_gate = torch::tanh(new_cell) * grad_h;
  auto d_new_cell = slope_of_tanh(new_cell) * (output_gate * grad_h) + grad_cell;
  auto d_old_cell = d_new_cell;
  auto d_candidate = input_gate * d_new_cell;
  auto d_input_gate = candidate * d_new_cell;
  auto gates = gate_weights.chunk(3, 1);
  d_input_gate *= slope_of_sigmoid(gates[0]);
  d_output_gate *= slope_of_sigmoid(gates[1]);
  d_candidate *= slope_of_elu(gates[2]);
  auto d_gates = torch::cat({d_input_gate, d_output_gate, d_candidate}, 1);
  auto d_weights = d_gates.t().mm(X);
  auto d_bias = d_gates.sum(/*dim=*/0, /*keepdim=*/true);
  auto d_X = d_gates.mm(weights);
  const auto state_size = grad_h.size(1);
  auto d_old_h = d_X.slice(/*dim=*/1, 0, state_size);
  auto d_input = d_X.slice(1, state_size);
  return {d_old_h, d_input, d_weights, d_bias, d_old_cell};
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.doc() = "a recurrent cell";
  m.def("forward", &cell_forward, "forward of the cell");
  m.def("backward", &cell_backward, "backward of the cell");
}
