"""A Keras model in TensorFlow 1: fit, evaluate, and the same as an Estimator."""
from __future__ import print_function

import argparse

import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import backend as K
from tensorflow.keras.callbacks import Callback, LearningRateScheduler
from tensorflow.keras.layers import Conv2D, Dense, Dropout, Flatten

parser = argparse.ArgumentParser()
parser.add_argument('--epochs', type=int, default=3)
parser.add_argument('--model_dir', default=None)
args = parser.parse_args()

num_classes = 4
random = np.random.RandomState(0)
y_train = random.randint(0, num_classes, 80)
x_train = random.rand(80, 6, 6, 1).astype('float32')
x_train[np.arange(80), y_train] += 1
y_train = keras.utils.to_categorical(y_train, num_classes)
x_test, y_test = x_train[:32], y_train[:32]

config = tf.ConfigProto()
config.gpu_options.allow_growth = True
K.set_session(tf.Session(config=config))


def init(seed):
    return keras.initializers.RandomNormal(stddev=0.1, seed=seed)


class Losses(Callback):
    def on_epoch_end(self, epoch, logs=None):
        print('epoch %d loss: %.7f val_loss: %.7f' % (
            epoch, logs['loss'], logs['val_loss']))


model = keras.Sequential([
    Conv2D(3, kernel_size=(3, 3), activation='relu', input_shape=(6, 6, 1),
           kernel_initializer=init(1)),
    Dropout(0.0),
    Flatten(),
    Dense(num_classes, activation='softmax', kernel_initializer=init(2)),
])
model.compile(loss=keras.losses.categorical_crossentropy,
              optimizer=keras.optimizers.SGD(lr=0.3, momentum=0.5),
              metrics=['accuracy'])
model.fit(x_train, y_train, batch_size=16, epochs=args.epochs, verbose=0,
          shuffle=False, validation_data=(x_test, y_test),
          callbacks=[Losses(),
                     LearningRateScheduler(lambda epoch: 0.3 * 0.8 ** epoch)])
score = model.evaluate(x_test, y_test, verbose=0)
print('Test loss: %.7f' % score[0])
print('Test accuracy:', score[1])

sess = K.get_session()
total = sess.run(tf.add_n([tf.reduce_sum(tf.square(v))
                           for v in model.trainable_weights]))
print('weights_loss: %.6f' % total)
