// The published constants of severities 1 to 5: CIFAR-C's for 32 x 32, Tiny-ImageNet-C's for 64 x
// 64, ImageNet-C's for larger images and for MNIST-C.
#pragma once

#include "qact/corrupt/effect.h"

namespace qact::corrupt {

template <class T>
struct Constants {
  T cifar[5], tiny[5], imagenet[5];

  const T& at(const EffectParams& params) const {
    const T* row = params.scale == Scale::cifar  ? cifar
                   : params.scale == Scale::tiny ? tiny
                                                 : imagenet;
    return row[params.severity - 1];
  }
};

// Standard deviation, of values in [0, 1].
inline constexpr Constants<double> kGaussianNoise{
    {.04, .06, .08, .09, .10}, {.04, .08, .12, .15, .18}, {.08, .12, .18, .26, .38}};
inline constexpr Constants<double> kSpeckleNoise{
    {.06, .1, .12, .16, .2}, {.15, .2, .25, .3, .35}, {.15, .2, .35, .45, .6}};
// Photons at full brightness.
inline constexpr Constants<double> kShotNoise{
    {500, 250, 100, 75, 50}, {250, 100, 50, 30, 15}, {60, 25, 12, 5, 3}};
// The fraction of values replaced.
inline constexpr Constants<double> kImpulseNoise{
    {.01, .02, .03, .05, .07}, {.01, .02, .05, .08, .14}, {.03, .06, .09, .17, .27}};

struct DefocusConstants {
  double radius, alias_sigma;
};
inline constexpr Constants<DefocusConstants> kDefocusBlur{
    {{.3, .4}, {.4, .5}, {.5, .6}, {1, .2}, {1.5, .1}},
    {{.5, .6}, {1, .1}, {1.5, .1}, {2.5, .01}, {3, .1}},
    {{3, .1}, {4, .5}, {6, .5}, {8, .5}, {10, .5}}};

struct GlassConstants {
  double sigma;
  int reach, rounds;
};
inline constexpr Constants<GlassConstants> kGlassBlur{
    {{.05, 1, 1}, {.25, 1, 1}, {.4, 1, 1}, {.25, 1, 2}, {.4, 1, 2}},
    {{.1, 1, 1}, {.5, 1, 1}, {.6, 1, 2}, {.7, 2, 1}, {.9, 2, 2}},
    {{.7, 1, 2}, {.9, 2, 1}, {1, 2, 3}, {1.1, 3, 2}, {1.5, 4, 2}}};

struct MotionConstants {
  double radius, sigma;
};
inline constexpr Constants<MotionConstants> kMotionBlur{
    {{6, 1}, {6, 1.5}, {6, 2}, {8, 2}, {9, 2.5}},
    {{10, 1}, {10, 1.5}, {10, 2}, {10, 2.5}, {12, 3}},
    {{10, 3}, {15, 5}, {15, 8}, {15, 12}, {20, 15}}};

// The factors run from 1 to below `stop`.
struct ZoomConstants {
  double stop, step;
};
inline constexpr Constants<ZoomConstants> kZoomBlur{
    {{1.06, .01}, {1.11, .01}, {1.16, .01}, {1.21, .01}, {1.26, .01}},
    {{1.06, .01}, {1.11, .01}, {1.16, .01}, {1.21, .01}, {1.26, .01}},
    {{1.11, .01}, {1.16, .01}, {1.21, .02}, {1.26, .02}, {1.31, .03}}};

inline constexpr Constants<double> kGaussianBlur{
    {.4, .6, .7, .8, 1}, {.5, .75, 1, 1.25, 1.5}, {1, 2, 3, 4, 6}};

struct SnowConstants {
  double mean, deviation, zoom, threshold;
  MotionConstants motion;
  double image;  // its weight
};
inline constexpr Constants<SnowConstants> kSnow{{{.1, .2, 1, .6, {8, 3}, .95},
                                                 {.1, .2, 1, .5, {10, 4}, .9},
                                                 {.15, .3, 1.75, .55, {10, 4}, .9},
                                                 {.25, .3, 2.25, .6, {12, 6}, .85},
                                                 {.3, .3, 1.25, .65, {14, 12}, .8}},
                                                {{.1, .2, 1, .6, {8, 3}, .8},
                                                 {.1, .2, 1, .5, {10, 4}, .8},
                                                 {.15, .3, 1.75, .55, {10, 4}, .7},
                                                 {.25, .3, 2.25, .6, {12, 6}, .65},
                                                 {.3, .3, 1.25, .65, {14, 12}, .6}},
                                                {{.1, .3, 3, .5, {10, 4}, .8},
                                                 {.2, .3, 2, .5, {12, 4}, .7},
                                                 {.55, .3, 4, .9, {12, 8}, .7},
                                                 {.55, .3, 4.5, .85, {12, 8}, .65},
                                                 {.55, .3, 2.5, .85, {12, 12}, .55}}};

struct FrostConstants {
  double image, texture;
};
inline constexpr Constants<FrostConstants> kFrost{
    {{1, .2}, {1, .3}, {.9, .4}, {.85, .4}, {.75, .45}},
    {{1, .3}, {.9, .4}, {.8, .45}, {.75, .5}, {.7, .55}},
    {{1, .4}, {.8, .6}, {.7, .7}, {.65, .7}, {.6, .75}}};

struct FogConstants {
  double thickness, decay;
};
inline constexpr Constants<FogConstants> kFog{{{.2, 3}, {.5, 3}, {.75, 2.5}, {1, 2}, {1.5, 1.75}},
                                              {{.4, 3}, {.7, 3}, {1, 2.5}, {1.5, 2}, {2, 1.75}},
                                              {{1.5, 2}, {2, 2}, {2.5, 1.7}, {2.5, 1.5}, {3, 1.4}}};

struct SpatterConstants {
  double mean, deviation, sigma, threshold;
  double strength;  // of the water; for mud, the sigma of its blur
  bool mud;
};
inline constexpr Constants<SpatterConstants> kSpatter{{{.62, .1, .7, .7, .5, false},
                                                       {.65, .1, .8, .7, .5, false},
                                                       {.65, .3, 1, .69, .5, false},
                                                       {.65, .1, .7, .69, .6, true},
                                                       {.65, .1, .5, .68, .6, true}},
                                                      {{.62, .1, .7, .7, .6, false},
                                                       {.65, .1, .8, .7, .6, false},
                                                       {.65, .3, 1, .69, .6, false},
                                                       {.65, .1, .7, .68, .6, true},
                                                       {.65, .1, .5, .67, .6, true}},
                                                      {{.65, .3, 4, .69, .6, false},
                                                       {.65, .3, 3, .68, .6, false},
                                                       {.65, .3, 2, .68, .5, false},
                                                       {.65, .3, 1, .65, 1.5, true},
                                                       {.67, .4, 1, .65, 1.5, true}}};

inline constexpr Constants<double> kBrightness{
    {.05, .1, .15, .2, .3}, {.1, .2, .3, .4, .5}, {.1, .2, .3, .4, .5}};
inline constexpr Constants<double> kContrast{
    {.75, .5, .4, .3, .15}, {.4, .3, .2, .1, .05}, {.4, .3, .2, .1, .05}};

struct SaturateConstants {
  double factor, offset;
};
inline constexpr Constants<SaturateConstants> kSaturate{
    {{.3, 0}, {.1, 0}, {1.5, 0}, {2, .1}, {2.5, .2}},
    {{.3, 0}, {.1, 0}, {2, 0}, {5, .1}, {30, .2}},
    {{.3, 0}, {.1, 0}, {2, 0}, {5, .1}, {20, .2}}};

// In units of the image's side; for ImageNet-C, of 244 pixels.
struct ElasticConstants {
  double strength, sigma, affine;
};
inline constexpr Constants<ElasticConstants> kElastic{
    {{0, 0, .08}, {.05, .2, .07}, {.08, .06, .06}, {.1, .04, .05}, {.1, .03, .03}},
    {{0, 0, .08}, {.05, .3, .06}, {.1, .08, .06}, {.1, .03, .03}, {.16, .03, .02}},
    {{2, .7, .1}, {2, .08, .2}, {.05, .01, .02}, {.07, .01, .02}, {.12, .01, .02}}};

// The reduced side as a fraction of the image's.
inline constexpr Constants<double> kPixelate{
    {.95, .9, .85, .75, .65}, {.9, .8, .7, .6, .5}, {.6, .5, .4, .3, .25}};
inline constexpr Constants<int> kJpegQuality{
    {80, 65, 58, 50, 40}, {65, 58, 50, 40, 25}, {25, 18, 15, 10, 7}};

// MNIST-C's own: radians, a factor, pixels.
inline constexpr double kShear[5] = {.2, .4, .6, .8, 1};
inline constexpr double kRotate[5] = {.2, .4, .6, .8, 1};
inline constexpr double kShrink[5] = {1 / .9, 1 / .8, 1 / .7, 1 / .6, 1 / .5};
inline constexpr int kTranslate[5] = {1, 2, 3, 4, 5};

}  // namespace qact::corrupt
