#pragma once
#include "pullback/library.h"
