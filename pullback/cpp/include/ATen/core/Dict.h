#pragma once
#include "pullback/ivalue.h"
