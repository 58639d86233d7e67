#pragma once
#error "TorchScript in C++ is not supported by pullback"
