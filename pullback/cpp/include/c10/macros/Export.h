#pragma once
#include "pullback/object.h"
