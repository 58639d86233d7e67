#pragma once
#error "torch::optim (the C++ frontend) is not supported by pullback"
