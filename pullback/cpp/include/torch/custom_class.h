#pragma once
#error "custom classes (torch::class_) are not supported by pullback"
