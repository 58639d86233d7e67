#pragma once
#include "pullback/dispatch.h"
