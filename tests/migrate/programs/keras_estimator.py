"""A Keras model as an Estimator with a folder, trained by `train_and_evaluate`."""
import numpy as np
import tensorflow as tf


def input_fn():
  x = np.linspace(0, 1, 16, dtype='float32').reshape(8, 2)
  return tf.data.Dataset.from_tensor_slices(
      (x, x.sum(axis=1, keepdims=True))).repeat().batch(4)


def main():
  model = tf.keras.Sequential([
      tf.keras.layers.Dense(3, 'tanh', input_shape=(2,),
                            kernel_initializer=tf.keras.initializers.Constant(.2)),
      tf.keras.layers.Dense(1, kernel_initializer='ones')])
  model.compile(tf.keras.optimizers.legacy.SGD(0.1), 'mse', metrics=['mae'])
  estimator = tf.keras.estimator.model_to_estimator(model, model_dir='out')
  estimator.train(input_fn, steps=5)
  result = estimator.evaluate(input_fn, steps=2)
  print('step', result['global_step'], 'loss', result['loss'], 'mae', result['mae'])


if __name__ == '__main__':
  main()
