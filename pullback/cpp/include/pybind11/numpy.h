#pragma once
#error "pybind11/numpy.h is not supported by pullback: take and return torch::Tensor"
