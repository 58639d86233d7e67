#pragma once
#error "the stable C++ ABI is not supported by pullback"
