#pragma once
#error "torch::nn (the C++ frontend) is not supported by pullback"
