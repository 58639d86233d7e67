#pragma once
#include "pullback/argument.h"
