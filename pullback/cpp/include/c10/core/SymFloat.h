#pragma once
#include "pullback/numbers.h"
