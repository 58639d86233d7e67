#pragma once
#error "TensorIterator is not supported by pullback"
