#pragma once
#include "pullback/functions.h"
