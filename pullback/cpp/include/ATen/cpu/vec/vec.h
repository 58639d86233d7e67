#pragma once
#error "at::vec is not supported by pullback"
