"""The programs in programs/: which function matters, its hand-edited fixes, and what may be advised.

    function    its qualified name, as `dyntrace why` takes it
    subject     what kind of program it is
    fixes       {FIX: dict}; `NAME.py FIX` runs the edited program
        setting     the --set texts that do the same without an edit, joined by blanks; None: there are none
        names       names of rules in src/trace/remedies.txt that advise this edit
        changes     the edit drops data or output, so the output may differ from the plain program's
    best        the fixes that help most, any of which the first remedy may be; [] : nothing to mend
    never       settings that raise or change results, which must not be advised
    both        measured on the older and newer torch as well

truths.json has the counts of each fix, by torch's version, as measure.py takes them from torch.
"""
PRACTICE = {
    "cosine_sgd": {
        "function": "sgd_step",
        "subject": "training with a schedule",
        "fixes": {"tensor": {"setting": "tensor=L['lr']@sgd_step", "names": ["learning rate", "move into a tensor"]}},
        "best": ["tensor"],
    },
    "adam_scheduler": {
        "function": "Adam.step",
        "subject": "optimizer wrapped by a scheduler",
        "fixes": {"tensor_lr": {"setting": "tensor=L['self'].param_groups[0]['lr']@Adam.step", "names": ["learning rate"]}},
        "best": ["tensor_lr"],
    },
    "train_step_whole": {
        "function": "train_step",
        "subject": "optimizer wrapped by a scheduler",
        "fixes": {"step_alone": {"setting": None, "names": ["optimizer"]}},
        "best": ["step_alone"],
    },
    "own_adam": {
        "function": "TinyAdam.update",
        "subject": "custom optimizer",
        "fixes": {"tensor_t": {"setting": "tensor=L['self'].t@TinyAdam.update", "names": ["move into a tensor"]}},
        "best": ["tensor_t"],
    },
    "lengths_and_eval": {
        "function": "Tagger.forward",
        "subject": "varying lengths and an eval phase",
        "fixes": {
            "dynamic": {"setting": "dynamic=True@Tagger", "names": ["dynamic dimension"]},
            "drop_last": {"setting": None, "names": ["small last batch"], "changes": True},
            "mark_both": {"setting": "maybe_mark_dynamic=L['tokens']@Tagger.forward", "names": ["dynamic dimension"]},
        },
        "best": ["dynamic", "drop_last", "mark_both"],
    },
    "last_batch_one": {
        "function": "Classifier.forward",
        "subject": "small last batches",
        "fixes": {
            "drop_last": {"setting": None, "names": ["small last batch"], "changes": True},
            "dynamic": {"setting": "dynamic=True@Classifier", "names": []},
            "unbacked": {"setting": "mark_unbacked=L['x'][0]@Classifier.forward", "names": ["sizes 0 and 1"]},
        },
        "best": ["drop_last", "unbacked"],
    },
    "accumulate_flag": {
        "function": "accumulate",
        "subject": "training",
        "fixes": {"outside": {"setting": None, "names": ["one value"]}},
        "best": ["outside"],
        "never": ["tensor=L['last']@accumulate"],
    },
    "ema_decay": {
        "function": "update_average",
        "subject": "training with a schedule",
        "fixes": {"tensor": {"setting": "tensor=L['decay']@update_average", "names": ["move into a tensor"]}},
        "best": ["tensor"],
    },
    "clip_branch": {
        "function": "clip",
        "subject": "data-dependent branch",
        "fixes": {"where": {"setting": None, "names": ["no branch"]}},
        "best": ["where"],
    },
    "loss_item": {
        "function": "step",
        "subject": ".item()",
        "fixes": {
            "capture": {"setting": "config.capture_scalar_outputs=True", "names": ["capture scalars"]},
            "outside": {"setting": None, "names": ["capture scalars"]},
        },
        "best": ["capture", "outside"],
    },
    "decode_cat": {
        "function": "Attention.forward",
        "subject": "decoding with a cache",
        "fixes": {
            "dynamic": {"setting": "dynamic=True@Attention", "names": ["dynamic dimension"]},
            "empty": {"setting": None, "names": ["one value"]},
            "mark": {"setting": "maybe_mark_dynamic=L['past'][0][1]@Attention.forward maybe_mark_dynamic=L['past'][1][1]@Attention.forward",
                     "names": ["dynamic dimension"]},
        },
        "best": ["empty", "mark"],
    },
    "decode_pos_module": {
        "function": "Layer.forward",
        "subject": "decoding with a cache",
        "fixes": {"unspec": {"setting": "config.allow_unspec_int_on_nn_module=True", "names": ["module integer"]}},
        "best": ["unspec"],
    },
    "static_cache_slice": {
        "function": "attend",
        "subject": "decoding with a cache",
        "fixes": {"mask": {"setting": None, "names": ["sliced number"]}},
        "best": ["mask"],
    },
    "layer_lists": {
        "function": "Decoder.forward",
        "subject": "decoding with a cache",
        "fixes": {
            "filled": {"setting": None, "names": ["one length"]},
            "dynamic": {"setting": "dynamic=True@Decoder", "names": ["dynamic dimension"]},
        },
        "best": ["filled"],
    },
    "rope_grows": {
        "function": "Rotary.forward",
        "subject": "transformers-like block",
        "fixes": {"long_enough": {"setting": None, "names": ["grows"]}},
        "best": ["long_enough"],
    },
    "mask_or_none": {
        "function": "Encoder.forward",
        "subject": "transformers-like block",
        "fixes": {"always": {"setting": None, "names": ["one value"]}},
        "best": ["always"],
    },
    "return_flags": {
        "function": "Block.forward",
        "subject": "transformers-like block",
        "fixes": {"always_all": {"setting": None, "names": ["one value"]}},
        "best": ["always_all"],
    },
    "layers_compiled_apart": {
        "function": "Block.forward",
        "subject": "many modules of one class",
        "fixes": {
            "unspec": {"setting": "config.allow_unspec_int_on_nn_module=True", "names": ["module integer"]},
            "isolate": {"setting": "isolate_recompiles=True@Block", "names": ["many functions"]},
            "whole": {"setting": None, "names": []},
        },
        "best": ["unspec", "whole"],
    },
    "log_length": {
        "function": "scaled_attention",
        "subject": "varying lengths",
        "fixes": {"outside": {"setting": None, "names": ["constant size"]}},
        "best": ["outside"],
        "never": ["mark_dynamic=L['k'][0]@scaled_attention"],
    },
    "token_window": {
        "function": "window_sum",
        "subject": "range over numbers",
        "fixes": {"slice": {"setting": None, "names": ["constant number", "range", "one value"]}},
        "best": ["slice"],
        "never": ["tensor=L['start']@window_sum"],
    },
    "moe_nonzero": {
        "function": "MoE.forward",
        "subject": "mixture of experts",
        "fixes": {
            "capture": {"setting": "config.capture_dynamic_output_shape_ops=True", "names": ["capture shapes"]},
            "dense": {"setting": None, "names": ["capture shapes"]},
        },
        "best": ["capture", "dense"],
    },
    "moe_counts": {
        "function": "Grouped.forward",
        "subject": "mixture of experts",
        "fixes": {
            "capture": {"setting": "config.capture_scalar_outputs=True", "names": ["capture scalars"]},
            "gather": {"setting": None, "names": ["capture scalars"]},
        },
        "best": ["capture", "gather"],
    },
    "moe_expert_id": {
        "function": "Experts.forward",
        "subject": "mixture of experts",
        "fixes": {"stacked": {"setting": None, "names": ["constant number", "one value"]}},
        "best": ["stacked"],
        "never": ["tensor=L['which']@Experts.forward"],
    },
    "lora_switch": {
        "function": "LoraLinear.forward",
        "subject": "LoRA switching",
        "fixes": {"buffer": {"setting": None, "names": ["one value"]}},
        "best": ["buffer"],
    },
    "lora_scale": {
        "function": "Lora.forward",
        "subject": "LoRA switching",
        "fixes": {"buffer": {"setting": "tensor=L['self'].scaling@Lora.forward", "names": ["move into a tensor"]}},
        "best": ["buffer"],
    },
    "lora_ranks": {
        "function": "Slot.forward",
        "subject": "LoRA switching",
        "fixes": {
            "unforced": {"setting": "config.force_parameter_static_shapes=False", "names": ["dynamic parameter"]},
            "padded": {"setting": None, "names": ["dynamic parameter"]},
        },
        "best": ["unforced", "padded"],
    },
    "gan_freeze": {
        "function": "Critic.forward",
        "subject": "GAN",
        "fixes": {"unfrozen": {"setting": None, "names": ["requires_grad"]}},
        "best": [],
    },
    "gan_detached": {
        "function": "score",
        "subject": "GAN",
        "fixes": {"detach": {"setting": None, "names": ["requires_grad"]}},
        "best": ["detach"],
    },
    "rollout_numpy": {
        "function": "policy",
        "subject": "numpy inputs",
        "fixes": {"dynamic": {"setting": "dynamic=True@policy", "names": ["dynamic dimension"]}},
        "best": ["dynamic"],
    },
    "epsilon_greedy": {
        "function": "act",
        "subject": "RL rollout",
        "fixes": {
            "one": {"setting": "tensor=L['epsilon']@act", "names": ["move into a tensor"]},
            "both": {"setting": "tensor=L['epsilon']@act tensor=L['temperature']@act", "names": ["several numbers"]},
        },
        "best": ["both"],
    },
    "done_flag": {
        "function": "discount",
        "subject": "RL rollout",
        "fixes": {"tensor": {"setting": None, "names": ["one value", "nothing to compile"]}},
        "best": ["tensor"],
        "never": ["tensor=L['done']@discount"],
    },
    "argmax_item": {
        "function": "Agent.forward",
        "subject": ".item()",
        "fixes": {
            "capture": {"setting": "config.capture_scalar_outputs=True", "names": ["capture scalars"]},
            "outside": {"setting": None, "names": ["capture scalars"]},
        },
        "best": ["capture", "outside"],
    },
    "nan_check": {
        "function": "Net.forward",
        "subject": "graph break in an inlined call",
        "fixes": {"after": {"setting": None, "names": ["no branch"]}},
        "best": ["after"],
    },
    "newton_loop": {
        "function": "square_root",
        "subject": "data-dependent branch",
        "fixes": {"fixed": {"setting": None, "names": ["no branch", "give up less", "not in a loop"]}},
        "best": ["fixed"],
    },
    "log_info": {
        "function": "Net.forward",
        "subject": "logging",
        "fixes": {
            "ignore": {"setting": None, "names": ["hoist the logging"]},
            "without": {"setting": None, "names": ["hoist the logging"]},
        },
        "best": ["ignore", "without"],
    },
    "warn_deprecated": {
        "function": "encode",
        "subject": "warnings",
        "fixes": {
            "reorder": {"setting": None, "names": ["hoist the warning"]},
            "outside": {"setting": None, "names": ["hoist the warning"]},
        },
        "best": ["reorder", "outside"],
    },
    "print_shape": {
        "function": "Net.forward",
        "subject": "print",
        "fixes": {
            "reorder": {"setting": None, "names": ["hoist the print"]},
            "without": {"setting": None, "names": ["hoist the print"], "changes": True},
        },
        "best": ["without"],
    },
    "timing_inside": {
        "function": "Timed.forward",
        "subject": "graph break",
        "fixes": {"outside": {"setting": None, "names": ["allow in graph", "move it", "as torch says"]}},
        "best": ["outside"],
    },
    "quant_scale": {
        "function": "quantize",
        "subject": ".item()",
        "fixes": {
            "capture": {"setting": "config.capture_scalar_outputs=True", "names": ["capture scalars"]},
            "tensor": {"setting": None, "names": ["capture scalars"]},
        },
        "best": ["capture", "tensor"],
    },
    "enum_mode": {
        "function": "pool",
        "subject": "Enum modes",
        "fixes": {"tensor": {"setting": None, "names": ["one value", "one object"]}},
        "best": ["tensor"],
    },
    "dataclass_config": {
        "function": "smooth",
        "subject": "dataclass configs",
        "fixes": {"tensor": {"setting": "tensor=L['config'].strength@smooth", "names": ["move into a tensor"]}},
        "best": ["tensor"],
    },
    "feature_order": {
        "function": "combine",
        "subject": "order of dict keys",
        "fixes": {
            "sorted": {"setting": None, "names": ["order of keys"]},
            "one_order": {"setting": None, "names": ["order of keys"]},
        },
        "best": ["sorted", "one_order"],
    },
    "optional_keys": {
        "function": "loss",
        "subject": "dict keys",
        "fixes": {"always": {"setting": None, "names": ["one set of keys"]}},
        "best": ["always"],
    },
    "lambda_activation": {
        "function": "layer",
        "subject": "lambdas in loops",
        "fixes": {"once": {"setting": None, "names": ["define once"]}},
        "best": [],
    },
    "compile_each_round": {
        "function": "Scorer.forward",
        "subject": "compile in a loop",
        "fixes": {"isolate": {"setting": "isolate_recompiles=True@Scorer", "names": ["many functions"]}},
        "best": ["isolate"],
    },
    "varargs_mean": {
        "function": "mean",
        "subject": "*args of varying length",
        "fixes": {"stack": {"setting": None, "names": ["one length"]}},
        "best": ["stack"],
    },
    "global_step": {
        "function": "warm",
        "subject": "global counters",
        "fixes": {"tensor": {"setting": None, "names": ["move into a tensor"]}},
        "best": ["tensor"],
    },
    "call_counter": {
        "function": "Counted.forward",
        "subject": "module counters",
        "fixes": {
            "unspec": {"setting": "config.allow_unspec_int_on_nn_module=True", "names": ["module integer"]},
            "buffer": {"setting": "tensor=L['self'].calls@Counted.forward", "names": ["module integer"]},
        },
        "best": ["buffer", "unspec"],
    },
    "closure_number": {
        "function": "make_loss.<locals>.loss",
        "subject": "closures",
        "fixes": {
            "tensor": {"setting": "tensor=L['temperature']@make_loss.<locals>.loss", "names": ["move into a tensor"]},
            "argument": {"setting": None, "names": ["move into a tensor"]},
        },
        "best": ["tensor", "argument"],
    },
    "grad_switch": {
        "function": "Model.forward",
        "subject": "grad mode switches",
        "fixes": {},
        "best": [],
    },
    "dropout_modes": {
        "function": "Net.forward",
        "subject": "grad mode switches",
        "fixes": {"with_grad": {"setting": None, "names": ["grad mode"]}},
        "best": [],
    },
    "autocast_eval": {
        "function": "predict",
        "subject": "autocast",
        "fixes": {"same": {"setting": None, "names": ["autocast"]}},
        "best": ["same"],
    },
    "float64_from_numpy": {
        "function": "normalize",
        "subject": "dtype",
        "fixes": {"float": {"setting": None, "names": ["one dtype"]}},
        "best": ["float"],
    },
    "per_sample_vmap": {
        "function": "energy",
        "subject": "vmap",
        "fixes": {"batched": {"setting": None, "names": ["modes"]}},
        "best": ["batched"],
    },
    "checkpoint_block": {
        "function": "Block.forward",
        "subject": "checkpointing",
        "fixes": {"not_reentrant": {"setting": None, "names": ["grad mode"]}},
        "best": ["not_reentrant"],
    },
    "nested_compile": {
        "function": "outer",
        "subject": "nested compile",
        "fixes": {
            "dynamic": {"setting": "dynamic=True@outer", "names": ["dynamic dimension"]},
            "auto": {"setting": "dynamic=None@outer", "names": []},
        },
        "best": ["dynamic"],
    },
    "hook_counts": {
        "function": "Net.forward",
        "subject": "hooks",
        "fixes": {"without": {"setting": None, "names": ["hooks"]}},
        "best": [],
    },
    "subclass_scale": {
        "function": "apply",
        "subject": "tensor subclass",
        "fixes": {"folded": {"setting": None, "names": ["subclass", "one value"]}},
        "best": ["folded"],
    },
    "muon_shapes": {
        "function": "orthogonalize",
        "subject": "parameter shapes",
        "fixes": {
            "unforced": {"setting": "config.force_parameter_static_shapes=False", "names": ["dynamic parameter"]},
            "data": {"setting": None, "names": ["dynamic parameter"]},
        },
        "best": ["unforced", "data"],
    },
    "param_groups": {
        "function": "decay",
        "subject": "parameter groups",
        "fixes": {"one_by_one": {"setting": None, "names": ["one length"]}},
        "best": ["one_by_one"],
    },
    "timestep_int": {
        "function": "Denoiser.forward",
        "subject": "diffusers-like block",
        "fixes": {"tensor": {"setting": "tensor=L['timestep']@Denoiser.forward", "names": ["move into a tensor"]}},
        "best": ["tensor"],
    },
    "image_sizes": {
        "function": "UNet.forward",
        "subject": "diffusers-like block",
        "fixes": {"dynamic": {"setting": "dynamic=True@UNet", "names": ["dynamic dimension"]}},
        "best": ["dynamic"],
    },
    "guidance_scale": {
        "function": "denoise",
        "subject": "diffusers-like block",
        "fixes": {"always": {"setting": None, "names": ["branch on a number"]}},
        "best": ["always"],
    },
    "channels_last": {
        "function": "blur",
        "subject": "strides",
        "fixes": {"contiguous": {"setting": None, "names": ["dynamic stride"]}},
        "best": ["contiguous"],
    },
    "threads_switch": {
        "function": "work",
        "subject": "global state",
        "fixes": {"once": {"setting": None, "names": ["global state"]}},
        "best": ["once"],
    },
    "vocabulary_lookup": {
        "function": "embed",
        "subject": "dict keys",
        "fixes": {"outside": {"setting": None, "names": ["constant number", "one value"]}},
        "best": ["outside"],
        "never": ["tensor=L['n']@embed"],
    },
    "module_argument": {
        "function": "apply",
        "subject": "modules as arguments",
        "fixes": {"weights": {"setting": None, "names": ["one type", "one value"]}},
        "best": ["weights"],
    },
    "beam_count": {
        "function": "extend",
        "subject": "decoding",
        "fixes": {"stack": {"setting": None, "names": ["one length"]}},
        "best": ["stack"],
    },
    "callback_list": {
        "function": "Observed.forward",
        "subject": "hooks",
        "fixes": {"first": {"setting": None, "names": ["one length"]}},
        "best": ["first"],
    },
    "func_grad": {
        "function": "energy",
        "subject": "vmap",
        "fixes": {"inside": {"setting": None, "names": ["modes"]}},
        "best": ["inside"],
    },
    "checkpoint_flag": {
        "function": "Stack.forward",
        "subject": "checkpointing",
        "fixes": {"always": {"setting": None, "names": ["one value"]}},
        "best": ["always"],
    },
    "disabled_helper": {
        "function": "mix",
        "subject": "nested compile",
        "fixes": {"enabled": {"setting": None, "names": ["enable"]}},
        "best": ["enabled"],
    },
    "autocast_dtypes": {
        "function": "head",
        "subject": "autocast",
        "fixes": {"one": {"setting": None, "names": ["autocast"]}},
        "best": ["one"],
    },
    "labelled_tensor": {
        "function": "scale",
        "subject": "tensor subclass",
        "fixes": {"plain": {"setting": None, "names": ["one type"]}},
        "best": ["plain"],
    },
    "split_name": {
        "function": "augment",
        "subject": "Enum modes",
        "fixes": {"noise": {"setting": None, "names": ["one value"]}},
        "best": ["noise"],
    },
    "lion_state": {
        "function": "Lion.step",
        "subject": "custom optimizer",
        "fixes": {"made": {"setting": None, "names": ["one set of keys"]}},
        "best": ["made"],
    },
    "partial_loss": {
        "function": "evaluate",
        "subject": "closures",
        "fixes": {"tensor": {"setting": "tensor=L['loss'].keywords['weight']@evaluate", "names": ["move into a tensor"]}},
        "best": ["tensor"],
    },
    "numpy_rate": {
        "function": "descend",
        "subject": "numpy inputs",
        "fixes": {
            "tensor": {"setting": None, "names": ["move into a tensor"]},
            "float": {"setting": None, "names": ["one type"]},
        },
        "best": [],
    },
    "unrolled_rnn": {
        "function": "Unrolled.forward",
        "subject": "range over numbers",
        "fixes": {"step": {"setting": None, "names": ["constant size"]}},
        "best": ["step"],
        "never": ["mark_dynamic=L['x'][0]@Unrolled.forward"],
    },
    "pair_lengths": {
        "function": "similarity",
        "subject": "varying lengths",
        "fixes": {"dynamic": {"setting": "dynamic=True@similarity", "names": ["dynamic dimension"]}},
        "best": ["dynamic"],
    },
    "metric_updates": {
        "function": "Accuracy.update",
        "subject": "metrics",
        "fixes": {
            "unspec": {"setting": "config.allow_unspec_int_on_nn_module=True", "names": ["module integer"]},
            "tensor": {"setting": "tensor=L['self']._update_count@Accuracy.update", "names": ["move into a tensor"]},
        },
        "best": ["tensor"],
    },
    "attention_processors": {
        "function": "Block.forward",
        "subject": "many modules of one class",
        "fixes": {
            "shared": {"setting": None, "names": ["one object"]},
            "isolate": {"setting": "isolate_recompiles=True@Block", "names": ["many functions"]},
        },
        "best": [],
    },
    "foreach_shapes": {
        "function": "apply_updates",
        "subject": "parameter shapes",
        "fixes": {
            "unforced": {"setting": "config.force_parameter_static_shapes=False", "names": ["dynamic parameter"]},
            "data": {"setting": None, "names": ["dynamic parameter"]},
        },
        "best": ["unforced", "data"],
    },
    "plateau": {
        "function": "step",
        "subject": "training with a schedule",
        "fixes": {"tensor": {"setting": None, "names": ["one type"]}},
        "best": [],
    },
    "onecycle_momentum": {
        "function": "NAdam.step",
        "subject": "training with a schedule",
        "fixes": {
            "lr": {"setting": "tensor=L['self'].param_groups[0]['lr']@NAdam.step", "names": ["learning rate"]},
            "steady": {"setting": None, "names": ["move into a tensor"]},
            "steady_lr": {"setting": None, "names": ["learning rate"]},
        },
        "best": ["steady_lr"],
    },
    "kv_size_nested": {
        "function": "Decoder.forward",
        "subject": "decoding with a cache",
        "fixes": {
            "unspec": {"setting": "config.allow_unspec_int_on_nn_module=True", "names": ["module integer"]},
            "position": {"setting": "tensor=L['self'].attention.cache.size@Decoder.forward", "names": ["move into a tensor"]},
        },
        "best": ["position"],
    },
    "cache_dict_index": {
        "function": "attend",
        "subject": "decoding with a cache",
        "fixes": {"tensor": {"setting": "tensor=L['cache']['end']@attend", "names": ["move into a tensor"]}},
        "best": ["tensor"],
    },
    "segment_counts": {
        "function": "loss",
        "subject": "range over numbers",
        "fixes": {"mask": {"setting": None, "names": ["constant number", "one value"]}},
        "best": ["mask"],
    },
    "box_ints": {
        "function": "area",
        "subject": ".item()",
        "fixes": {
            "capture": {"setting": "config.capture_scalar_outputs=True", "names": ["capture scalars"]},
            "tensor": {"setting": None, "names": ["capture scalars"]},
        },
        "best": ["capture", "tensor"],
    },
    "numpy_dct": {
        "function": "features",
        "subject": "graph break",
        "fixes": {"torch": {"setting": None, "names": ["enable"]}},
        "best": ["torch"],
    },
    "masked_mean": {
        "function": "pooled",
        "subject": "boolean index",
        "fixes": {
            "capture": {"setting": "config.capture_dynamic_output_shape_ops=True", "names": ["capture shapes"]},
            "weights": {"setting": None, "names": ["capture shapes"]},
        },
        "best": ["capture", "weights"],
    },
    "size_table": {
        "function": "encode",
        "subject": "dict keys",
        "fixes": {"outside": {"setting": None, "names": ["constant size"]}},
        "best": ["outside"],
    },
    "keyword_sets": {
        "function": "Model.forward",
        "subject": "dict keys",
        "fixes": {"always": {"setting": None, "names": ["one set of keys"]}},
        "best": ["always"],
    },
    "ppo_coefficients": {
        "function": "ppo_loss",
        "subject": "RL rollout",
        "fixes": {
            "clip": {"setting": "tensor=L['clip_range']@ppo_loss", "names": ["move into a tensor"]},
            "both": {"setting": "tensor=L['clip_range']@ppo_loss tensor=L['entropy_coef']@ppo_loss", "names": ["several numbers"]},
        },
        "best": ["both"],
    },
    "ema_step": {
        "function": "Average.update",
        "subject": "custom optimizer",
        "fixes": {"tensor": {"setting": None, "names": ["move into a tensor", "constant number"]}},
        "best": ["tensor"],
    },
    "gumbel_anneal": {
        "function": "sample",
        "subject": "RL rollout",
        "fixes": {
            "temperature": {"setting": "tensor=L['temperature']@sample", "names": ["move into a tensor"]},
            "tensor": {"setting": None, "names": ["number and flag"]},
        },
        "best": ["tensor"],
    },
    "graph_batches": {
        "function": "Conv.forward",
        "subject": "varying lengths",
        "fixes": {
            "dynamic": {"setting": "dynamic=True@Conv", "names": ["dynamic dimension", "dynamic shapes"]},
            "mark": {"setting": "maybe_mark_dynamic=L['x'][0]@Conv.forward maybe_mark_dynamic=L['edges'][1]@Conv.forward",
                     "names": ["dynamic dimension"]},
        },
        "best": ["dynamic", "mark"],
    },
    "ray_chunks": {
        "function": "render",
        "subject": "small last batches",
        "fixes": {
            "dynamic": {"setting": "dynamic=True@render", "names": ["dynamic dimension"]},
            "pad": {"setting": None, "names": ["last batch"]},
        },
        "best": ["dynamic", "pad"],
    },
    "step_from_outside": {
        "function": "Model.forward",
        "subject": "module counters",
        "fixes": {
            "unspec": {"setting": "config.allow_unspec_int_on_nn_module=True", "names": ["module integer"]},
            "tensor": {"setting": "tensor=L['self'].global_step@Model.forward", "names": ["module integer"]},
        },
        "best": ["tensor"],
    },
    "dropout_curriculum": {
        "function": "drop",
        "subject": "training with a schedule",
        "fixes": {"mask": {"setting": None, "names": ["number only"]}},
        "best": ["mask"],
        "never": ["tensor=L['p']@drop"],
    },
    "mixup_lambda": {
        "function": "mix",
        "subject": "training with a schedule",
        "fixes": {"tensor": {"setting": "tensor=L['share']@mix", "names": ["move into a tensor"]}},
        "best": ["tensor"],
    },
    "growing_history": {
        "function": "Memory.forward",
        "subject": "growing lists",
        "fixes": {"sum": {"setting": None, "names": ["grows with each call"]}},
        "best": ["sum"],
    },
    "norm_in_text": {
        "function": "clip",
        "subject": ".item()",
        "fixes": {"after": {"setting": None, "names": ["value in a text"]}},
        "best": ["after"],
    },
    "jitted_in_loop": {
        "function": "make.<locals>.loss",
        "subject": "compile in a loop",
        "fixes": {
            "tensor": {"setting": "tensor=L['weight']@make.<locals>.loss", "names": ["move into a tensor"]},
            "argument": {"setting": None, "names": ["define once", "move into a tensor"]},
        },
        "best": ["argument", "tensor"],
    },
    "tied_inputs": {
        "function": "distance",
        "subject": "one tensor twice",
        "fixes": {"clone": {"setting": None, "names": ["aliasing"]}},
        "best": ["clone"],
    },
    "pixels_or_images": {
        "function": "transform",
        "subject": "numbers of dimensions",
        "fixes": {"flat": {"setting": None, "names": ["one rank"]}},
        "best": ["flat"],
    },
    "lazy_mask": {
        "function": "Attention.forward",
        "subject": "attributes made in the first call",
        "fixes": {"init": {"setting": None, "names": ["attribute"]}},
        "best": ["init"],
    },
    "layer_drop": {
        "function": "Stack.forward",
        "subject": "random numbers of Python",
        "fixes": {"tensor": {"setting": None, "names": ["draw before"]}},
        "best": ["tensor"],
    },
    "gradient_penalty": {
        "function": "critic_loss",
        "subject": "gradients within",
        "fixes": {"outside": {"setting": None, "names": ["gradients outside"]}},
        "best": ["outside"],
    },
    "growing_heads": {
        "function": "Learner.forward",
        "subject": "modules that are added",
        "fixes": {"all": {"setting": None, "names": ["modules that are added"]}},
        "best": ["all"],
    },
    "random_crop": {
        "function": "crop",
        "subject": "several sliced numbers",
        "fixes": {"index": {"setting": None, "names": ["sliced number"]}},
        "best": ["index"],
    },
    "one_hot_labels": {
        "function": "smoothed_loss",
        "subject": "sizes that depend on data",
        "fixes": {"classes": {"setting": None, "names": ["name the classes"]}},
        "best": ["classes"],
    },
    "inference_once": {
        "function": "predict",
        "subject": "inference mode",
        "fixes": {"no_grad": {"setting": None, "names": ["modes"]}},
        "best": ["no_grad"],
    },
    "token_list": {
        "function": "score",
        "subject": "lists of numbers",
        "fixes": {"tensor": {"setting": None, "names": ["list of numbers"]}},
        "best": ["tensor"],
    },
    "aligned_input": {
        "function": "normed",
        "subject": "addresses of tensors",
        "fixes": {"outside": {"setting": None, "names": ["test before"]}},
        "best": ["outside"],
    },
    "generator_argument": {
        "function": "ancestral_step",
        "subject": "generators of random numbers",
        "fixes": {"outside": {"setting": None, "names": ["draw before"]}},
        "best": ["outside"],
    },
}
