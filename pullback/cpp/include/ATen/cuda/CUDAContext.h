#pragma once
#error "CUDA in C++ extensions is not supported by pullback"
