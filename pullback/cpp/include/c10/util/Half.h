#pragma once
#include "pullback/types.h"
