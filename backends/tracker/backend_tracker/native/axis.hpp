// The Kalman filter of one coordinate that moves with constant velocity.
#pragma once

namespace tracking {

// A position, its velocity per frame, and their covariance. The filters of the trackers measure each
// coordinate on its own, so the matrices of a box have one block of 2 × 2 for each coordinate, and zeros.
struct Axis {
  double position = 0, velocity = 0;
  double variance = 1, covariance = 0, velocity_variance = 1;

  // Move one frame ahead. The arguments are the process noise.
  void predict(double noise, double velocity_noise) {
    position += velocity;
    double mixed = covariance + velocity_variance;
    variance = (variance + covariance) + mixed + noise;
    covariance = mixed;
    velocity_variance += velocity_noise;
  }

  // Take a measurement of the position. `noise` is its variance. Joseph's form: the variances stay positive.
  void update(double measured, double noise) {
    double inverse = 1.0 / (variance + noise);
    double gain = variance * inverse, velocity_gain = covariance * inverse;
    double residual = measured - position;
    position += gain * residual;
    velocity += velocity_gain * residual;
    double kept = 1.0 - gain;
    double first = kept * variance, second = kept * covariance;
    double third = covariance - velocity_gain * variance;
    double fourth = velocity_variance - velocity_gain * covariance;
    variance = first * kept + gain * noise * gain;
    covariance = (second - first * velocity_gain) + gain * noise * velocity_gain;
    velocity_variance = (fourth - third * velocity_gain) + velocity_gain * noise * velocity_gain;
  }
};

}  // namespace tracking
