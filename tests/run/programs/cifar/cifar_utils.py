"""Hooks, device setters and run configurations of the CIFAR program."""
import collections

import six

import tensorflow as tf

from tensorflow.contrib.learn.python.learn import run_config
from tensorflow.core.framework import node_def_pb2
from tensorflow.python.framework import device as pydev
from tensorflow.python.platform import tf_logging as logging
from tensorflow.python.training import basic_session_run_hooks
from tensorflow.python.training import device_setter
from tensorflow.python.training import session_run_hook
from tensorflow.python.training import training_util


class RunConfig(tf.contrib.learn.RunConfig):
  """RunConfig whose uid leaves the number of steps out."""

  def uid(self, whitelist=None):
    if whitelist is None:
      whitelist = run_config._DEFAULT_UID_WHITE_LIST
    state = {k: v for k, v in self.__dict__.items() if not k.startswith('__')}
    for k in whitelist:
      state.pop('_' + k, None)
    ordered_state = collections.OrderedDict(
        sorted(state.items(), key=lambda t: t[0]))
    return ', '.join('%s=%r' % (k, v) for (k, v) in
                     six.iteritems(ordered_state))


class ExamplesPerSecondHook(session_run_hook.SessionRunHook):
  """Hook to print out examples per second."""

  def __init__(self, batch_size, every_n_steps=100):
    self._timer = basic_session_run_hooks.SecondOrStepTimer(
        every_steps=every_n_steps)
    self._step_train_time = 0
    self._total_steps = 0
    self._batch_size = batch_size

  def begin(self):
    self._global_step_tensor = training_util.get_global_step()

  def before_run(self, run_context):  # pylint: disable=unused-argument
    return basic_session_run_hooks.SessionRunArgs(self._global_step_tensor)

  def after_run(self, run_context, run_values):
    global_step = run_values.results
    if self._timer.should_trigger_for_step(global_step):
      elapsed_time, elapsed_steps = self._timer.update_last_triggered_step(
          global_step)
      if elapsed_time is not None:
        self._step_train_time += elapsed_time
        self._total_steps += elapsed_steps
        average_examples_per_sec = self._batch_size * (
            self._total_steps / self._step_train_time)
        logging.info('Average examples/sec: %g, step = %g',
                     average_examples_per_sec, self._total_steps)


def local_device_setter(num_devices=1, worker_device='/cpu:0'):
  """Places variables on the devices in turn and the rest on the worker."""
  ps_ops = ['Variable', 'VariableV2', 'VarHandleOp']
  ps_strategy = device_setter._RoundRobinStrategy(num_devices)

  def _local_device_chooser(op):
    current_device = pydev.DeviceSpec.from_string(op.device or '')
    node_def = op if isinstance(op, node_def_pb2.NodeDef) else op.node_def
    if node_def.op in ps_ops:
      ps_device_spec = pydev.DeviceSpec.from_string(
          '/cpu:{}'.format(ps_strategy(op)))
      ps_device_spec.merge_from(current_device)
      return ps_device_spec.to_string()
    else:
      worker_device_spec = pydev.DeviceSpec.from_string(worker_device or '')
      worker_device_spec.merge_from(current_device)
      return worker_device_spec.to_string()
  return _local_device_chooser
