"""Premade Estimators for the iris dataset, as in the TensorFlow 1 guide."""
import argparse

import tensorflow as tf

import iris_data


parser = argparse.ArgumentParser()
parser.add_argument('--batch_size', default=20, type=int, help='batch size')
parser.add_argument('--train_steps', default=12, type=int,
                    help='number of training steps')
parser.add_argument('--model_dir', default=None, type=str)


def main(argv):
    args = parser.parse_args(argv[1:])

    (train_x, train_y), (test_x, test_y) = iris_data.load_data()

    my_feature_columns = [tf.feature_column.numeric_column(key=key)
                          for key in sorted(train_x.keys())]

    run_config = tf.estimator.RunConfig(model_dir=args.model_dir,
                                        tf_random_seed=1,
                                        log_step_count_steps=4,
                                        save_summary_steps=4)
    classifier = tf.estimator.LinearClassifier(
        feature_columns=my_feature_columns,
        n_classes=3,
        optimizer=tf.train.FtrlOptimizer(0.2, l2_regularization_strength=0.01),
        config=run_config)

    classifier.train(
        input_fn=lambda: iris_data.train_input_fn(train_x, train_y,
                                                  args.batch_size),
        steps=args.train_steps)

    eval_result = classifier.evaluate(
        input_fn=lambda: iris_data.eval_input_fn(test_x, test_y,
                                                 args.batch_size))
    print('\nTest set accuracy: {accuracy:0.3f}\n'.format(**eval_result))

    expected = ['Setosa', 'Versicolor', 'Virginica']
    predict_x = {
        'SepalLength': [5.1, 5.9, 6.9],
        'SepalWidth': [3.3, 3.0, 3.1],
        'PetalLength': [1.7, 4.2, 5.4],
        'PetalWidth': [0.5, 1.5, 2.1],
    }
    predictions = classifier.predict(
        input_fn=lambda: iris_data.eval_input_fn(predict_x, labels=None,
                                                 batch_size=args.batch_size))
    template = 'Prediction is "{}" ({:.1f}%), expected "{}"'
    for pred_dict, expec in zip(predictions, expected):
        class_id = pred_dict['class_ids'][0]
        probability = pred_dict['probabilities'][class_id]
        print(template.format(iris_data.SPECIES[class_id],
                              100 * probability, expec))


if __name__ == '__main__':
    tf.logging.set_verbosity(tf.logging.INFO)
    tf.app.run(main)
