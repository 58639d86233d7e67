#pragma once
#error "torch::data (the C++ frontend) is not supported by pullback"
