#pragma once
#error "the AOTInductor C shim is not supported by pullback"
