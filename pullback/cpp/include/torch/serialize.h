#pragma once
#error "torch::save and torch::load in C++ are not supported by pullback"
