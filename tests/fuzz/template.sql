INSERT INTO "cache_entry" VALUES(1,4573,1,'0/0','eager',NULL,10,23434693388,NULL,NULL);
INSERT INTO "cache_entry" VALUES(2,6829,12,'1/0','eager',NULL,6,23675815908,NULL,NULL);
INSERT INTO "cache_entry" VALUES(3,4573,13,'0/1','eager',NULL,10,23914792654,NULL,NULL);
INSERT INTO "cache_entry" VALUES(4,4573,14,'0/2','eager',NULL,11,24414035109,NULL,NULL);
INSERT INTO "cache_entry" VALUES(5,6829,15,'1/1','eager',NULL,7,24657522707,24657622707,'reset');
INSERT INTO "code" VALUES(4573,1,'/tmp/small.py','f',2,'function',NULL,-5303444570965181674);
INSERT INTO "code" VALUES(6829,1,'/tmp/small.py','torch_dynamo_resume_in_f_at_5',5,'resume',4573,3970599717739564813);
INSERT INTO "code_total" VALUES(4573,8,1805809175,1305260532,0);
INSERT INTO "code_total" VALUES(6829,8,484286000,484286000,0);
INSERT INTO "compile" VALUES(1,1,4573,1,'0/0',22849297687,23434702739,'compiled',1,'first call',NULL);
INSERT INTO "compile" VALUES(12,12,6829,1,'1/0',23452158663,23675822996,'compiled',2,'first call',NULL);
INSERT INTO "compile" VALUES(13,13,4573,1,'0/1',23693457183,23914810805,'compiled',3,'no entry fitted',NULL);
INSERT INTO "compile" VALUES(14,17,4573,1,'0/2',23919381890,24414044770,'compiled',4,'no entry fitted',NULL);
INSERT INTO "compile" VALUES(15,18,6829,1,'1/1',24414685465,24657530866,'compiled',5,'no entry fitted',NULL);
INSERT INTO "compile_phase" VALUES(1,'gc',23426732007,23427160295,'0/0');
INSERT INTO "compile_phase" VALUES(12,'insert_deferred_runtime_asserts',23513421287,23515736039,'1/0');
INSERT INTO "compile_phase" VALUES(13,'build_guards',23788334055,23893583591,'0/1');
INSERT INTO "compile_phase" VALUES(14,'build_guards',24272008167,24403201511,'0/2');
INSERT INTO "compile_phase" VALUES(15,'build_guards',24508600039,24646741479,'1/1');
INSERT INTO "frame" VALUES(1,1,NULL,4573,0,2,22849156527,23692650199,1,0);
INSERT INTO "frame" VALUES(12,1,1,6829,0,2,23452083759,23692634972,2,0);
INSERT INTO "frame" VALUES(13,1,NULL,4573,0,2,23692840785,23915075084,3,0);
INSERT INTO "frame" VALUES(14,1,13,6829,0,1,23914997336,23915072501,2,0);
INSERT INTO "frame" VALUES(15,1,NULL,4573,0,1,23915182075,23915221570,3,0);
INSERT INTO "frame" VALUES(16,1,15,6829,0,1,23915207984,23915221049,2,0);
INSERT INTO "frame" VALUES(17,1,NULL,4573,0,2,23918424536,24657712231,4,0);
INSERT INTO "frame" VALUES(18,1,17,6829,0,2,24414278515,24657706635,5,0);
INSERT INTO "frame" VALUES(129,2,NULL,4573,0,1,24661748241,24662355819,3,0);
INSERT INTO "frame" VALUES(130,2,129,6829,0,1,24662190452,24662354337,2,0);
INSERT INTO "frame" VALUES(131,2,NULL,4573,0,1,24662398908,24662430093,3,0);
INSERT INTO "frame" VALUES(132,2,131,6829,0,1,24662418831,24662429593,2,0);
INSERT INTO "frame" VALUES(133,2,NULL,4573,0,1,24662444269,24662465944,3,0);
INSERT INTO "frame" VALUES(134,2,133,6829,0,1,24662456293,24662465483,2,0);
INSERT INTO "frame" VALUES(135,2,NULL,4573,0,1,24662488499,24662582075,4,0);
INSERT INTO "frame" VALUES(136,2,135,6829,0,1,24662546885,24662581485,5,0);
INSERT INTO "graph" VALUES(1,1,'__compiled_fn_2_9570532d_2784_4ed2_835f_36b7d3758529',3);
INSERT INTO "graph" VALUES(2,12,'__compiled_fn_5_2f555997_af2f_46e6_9dab_173d725f209f',3);
INSERT INTO "graph" VALUES(3,13,'__compiled_fn_8_5b216421_8fc8_4f4d_8b94_6bbbfb51bcc9',4);
INSERT INTO "graph" VALUES(4,14,'__compiled_fn_12_49f9ddf2_ca8e_42bc_bf5c_e4ff119acf42',5);
INSERT INTO "graph" VALUES(5,15,'__compiled_fn_15_0a2cfb13_746b_41b2_9d82_028eeff2b5c8',4);
INSERT INTO "graph_break" VALUES(15,1,4573,5,60,'Call to `torch._dynamo.graph_break()`
  Explanation: User-inserted graph break. Message: None
  Hint: Remove the `torch._dynamo.graph_break()` call.

  Developer debug context: Called `torch._dynamo.graph_break()` with args `[]`, kwargs `{}`

 For more details about this graph break, please visit: https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0025.html','File "/tmp/small.py", line 5, in f',6829);
INSERT INTO "graph_break" VALUES(53,13,4573,5,60,'Call to `torch._dynamo.graph_break()`
  Explanation: User-inserted graph break. Message: None
  Hint: Remove the `torch._dynamo.graph_break()` call.

  Developer debug context: Called `torch._dynamo.graph_break()` with args `[]`, kwargs `{}`

 For more details about this graph break, please visit: https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0025.html','File "/tmp/small.py", line 5, in f',6829);
INSERT INTO "graph_break" VALUES(71,14,4573,5,60,'Call to `torch._dynamo.graph_break()`
  Explanation: User-inserted graph break. Message: None
  Hint: Remove the `torch._dynamo.graph_break()` call.

  Developer debug context: Called `torch._dynamo.graph_break()` with args `[]`, kwargs `{}`

 For more details about this graph break, please visit: https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0025.html','File "/tmp/small.py", line 5, in f',6829);
INSERT INTO "graph_node" VALUES(1,0,'placeholder','l_x_','L_x_','()','{}');
INSERT INTO "graph_node" VALUES(1,1,'call_function','y','_operator.mul','(l_x_, 2)','{}');
INSERT INTO "graph_node" VALUES(1,2,'output','output','output','((y,),)','{}');
INSERT INTO "graph_node" VALUES(2,0,'placeholder','l_y_','L_y_','()','{}');
INSERT INTO "graph_node" VALUES(2,1,'call_function','add','_operator.add','(l_y_, 1)','{}');
INSERT INTO "graph_node" VALUES(2,2,'output','output','output','((add,),)','{}');
INSERT INTO "graph_node" VALUES(3,0,'placeholder','l_x_','L_x_','()','{}');
INSERT INTO "graph_node" VALUES(3,1,'placeholder','l_n_','L_n_','()','{}');
INSERT INTO "graph_node" VALUES(3,2,'call_function','y','_operator.mul','(l_x_, l_n_)','{}');
INSERT INTO "graph_node" VALUES(3,3,'output','output','output','((y,),)','{}');
INSERT INTO "graph_node" VALUES(4,0,'placeholder','s77','s77','()','{}');
INSERT INTO "graph_node" VALUES(4,1,'placeholder','l_x_','L_x_','()','{}');
INSERT INTO "graph_node" VALUES(4,2,'placeholder','l_n_','L_n_','()','{}');
INSERT INTO "graph_node" VALUES(4,3,'call_function','y','_operator.mul','(l_x_, l_n_)','{}');
INSERT INTO "graph_node" VALUES(4,4,'output','output','output','((y,),)','{}');
INSERT INTO "graph_node" VALUES(5,0,'placeholder','s17','s17','()','{}');
INSERT INTO "graph_node" VALUES(5,1,'placeholder','l_y_','L_y_','()','{}');
INSERT INTO "graph_node" VALUES(5,2,'call_function','add','_operator.add','(l_y_, 1)','{}');
INSERT INTO "graph_node" VALUES(5,3,'output','output','output','((add,),)','{}');
INSERT INTO "guard" VALUES(1,1,0,'LAMBDA_GUARD','saved tensors hooks','torch._functorch.aot_autograd.utils.top_saved_tensors_hooks ids == None',NULL);
INSERT INTO "guard" VALUES(2,1,1,'GLOBAL_STATE','global state','___check_global_state() against {"allow_bf16_reduce":0,"allow_fp16_reduce":0,"allow_tf32":false,"autocast_state":{"cached_enabled":true,"dtype":[15,5,5,15,5,5,15,15,5,5],"enabled":[false,false,false,f',NULL);
INSERT INTO "guard" VALUES(3,1,2,'TORCH_FUNCTION_MODE_STACK','torch function modes','___check_torch_function_mode_stack()',NULL);
INSERT INTO "guard" VALUES(4,1,3,'DEFAULT_DEVICE','torch.utils._device.CURRENT_DEVICE','utils_device.CURRENT_DEVICE == None',NULL);
INSERT INTO "guard" VALUES(5,1,4,'EQUALS_MATCH','L[''n'']','L[''n''] == 2','File "/tmp/small.py", line 4, in f');
INSERT INTO "guard" VALUES(6,1,5,'TENSOR_MATCH','L[''x'']','check_tensor(L[''x''], Tensor, DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU), torch.float32, device=None, requires_grad=False, size=[4], stride=[1])','File "/tmp/small.py", line 4, in f');
INSERT INTO "guard" VALUES(7,1,6,'DIMENSION_DYNAMIC_MARKING_GUARD','L[''x'']','hasattr(L[''x''], ''_dynamo_dynamic_indices'') == False and hasattr(L[''x''], ''_dynamo_weak_dynamic_indices'') == False and hasattr(L[''x''], ''_dynamo_unbacked_indices'') == False and hasattr(L[''x''], ''_dynamo_s','File "/tmp/small.py", line 4, in f');
INSERT INTO "guard" VALUES(8,1,7,'ID_MATCH','G[''torch'']','___check_obj_id(G[''torch''], 139816449949536), type=<class ''module''>','File "/tmp/small.py", line 5, in f');
INSERT INTO "guard" VALUES(9,1,8,'ID_MATCH','G[''torch'']._dynamo','___check_obj_id(G[''torch'']._dynamo, 139815874323904), type=<class ''module''>','File "/tmp/small.py", line 5, in f');
INSERT INTO "guard" VALUES(10,1,9,'ID_MATCH','G[''torch'']._dynamo.graph_break.__code__','___check_obj_id(G[''torch'']._dynamo.graph_break.__code__, 139815830156272), type=<class ''code''>','File "/tmp/small.py", line 5, in f');
INSERT INTO "guard" VALUES(11,2,0,'LAMBDA_GUARD','saved tensors hooks','torch._functorch.aot_autograd.utils.top_saved_tensors_hooks ids == None',NULL);
INSERT INTO "guard" VALUES(12,2,1,'GLOBAL_STATE','global state','___check_global_state() against {"allow_bf16_reduce":0,"allow_fp16_reduce":0,"allow_tf32":false,"autocast_state":{"cached_enabled":true,"dtype":[15,5,5,15,5,5,15,15,5,5],"enabled":[false,false,false,f',NULL);
INSERT INTO "guard" VALUES(13,2,2,'TORCH_FUNCTION_MODE_STACK','torch function modes','___check_torch_function_mode_stack()',NULL);
INSERT INTO "guard" VALUES(14,2,3,'DEFAULT_DEVICE','torch.utils._device.CURRENT_DEVICE','utils_device.CURRENT_DEVICE == None',NULL);
INSERT INTO "guard" VALUES(15,2,4,'TENSOR_MATCH','L[''y'']','check_tensor(L[''y''], Tensor, DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU), torch.float32, device=None, requires_grad=False, size=[4], stride=[1])','File "/tmp/small.py", line 6, in torch_dynamo_resume_in_f_at_5');
INSERT INTO "guard" VALUES(16,2,5,'DIMENSION_DYNAMIC_MARKING_GUARD','L[''y'']','hasattr(L[''y''], ''_dynamo_dynamic_indices'') == False and hasattr(L[''y''], ''_dynamo_weak_dynamic_indices'') == False and hasattr(L[''y''], ''_dynamo_unbacked_indices'') == False and hasattr(L[''y''], ''_dynamo_s','File "/tmp/small.py", line 6, in torch_dynamo_resume_in_f_at_5');
INSERT INTO "guard" VALUES(17,3,0,'LAMBDA_GUARD','saved tensors hooks','torch._functorch.aot_autograd.utils.top_saved_tensors_hooks ids == None',NULL);
INSERT INTO "guard" VALUES(18,3,1,'GLOBAL_STATE','global state','___check_global_state() against {"allow_bf16_reduce":0,"allow_fp16_reduce":0,"allow_tf32":false,"autocast_state":{"cached_enabled":true,"dtype":[15,5,5,15,5,5,15,15,5,5],"enabled":[false,false,false,f',NULL);
INSERT INTO "guard" VALUES(19,3,2,'TORCH_FUNCTION_MODE_STACK','torch function modes','___check_torch_function_mode_stack()',NULL);
INSERT INTO "guard" VALUES(20,3,3,'DEFAULT_DEVICE','torch.utils._device.CURRENT_DEVICE','utils_device.CURRENT_DEVICE == None',NULL);
INSERT INTO "guard" VALUES(21,3,4,'TYPE_MATCH','L[''n'']','___check_type_id(L[''n''], 139816459402464), type=<class ''int''>','File "/tmp/small.py", line 4, in f');
INSERT INTO "guard" VALUES(22,3,5,'TENSOR_MATCH','L[''x'']','check_tensor(L[''x''], Tensor, DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU), torch.float32, device=None, requires_grad=False, size=[4], stride=[1])','File "/tmp/small.py", line 4, in f');
INSERT INTO "guard" VALUES(23,3,6,'DIMENSION_DYNAMIC_MARKING_GUARD','L[''x'']','hasattr(L[''x''], ''_dynamo_dynamic_indices'') == False and hasattr(L[''x''], ''_dynamo_weak_dynamic_indices'') == False and hasattr(L[''x''], ''_dynamo_unbacked_indices'') == False and hasattr(L[''x''], ''_dynamo_s','File "/tmp/small.py", line 4, in f');
INSERT INTO "guard" VALUES(24,3,7,'ID_MATCH','G[''torch'']','___check_obj_id(G[''torch''], 139816449949536), type=<class ''module''>','File "/tmp/small.py", line 5, in f');
INSERT INTO "guard" VALUES(25,3,8,'ID_MATCH','G[''torch'']._dynamo','___check_obj_id(G[''torch'']._dynamo, 139815874323904), type=<class ''module''>','File "/tmp/small.py", line 5, in f');
INSERT INTO "guard" VALUES(26,3,9,'ID_MATCH','G[''torch'']._dynamo.graph_break.__code__','___check_obj_id(G[''torch'']._dynamo.graph_break.__code__, 139815830156272), type=<class ''code''>','File "/tmp/small.py", line 5, in f');
INSERT INTO "guard" VALUES(27,4,0,'LAMBDA_GUARD','saved tensors hooks','torch._functorch.aot_autograd.utils.top_saved_tensors_hooks ids == None',NULL);
INSERT INTO "guard" VALUES(28,4,1,'GLOBAL_STATE','global state','___check_global_state() against {"allow_bf16_reduce":0,"allow_fp16_reduce":0,"allow_tf32":false,"autocast_state":{"cached_enabled":true,"dtype":[15,5,5,15,5,5,15,15,5,5],"enabled":[false,false,false,f',NULL);
INSERT INTO "guard" VALUES(29,4,2,'TORCH_FUNCTION_MODE_STACK','torch function modes','___check_torch_function_mode_stack()',NULL);
INSERT INTO "guard" VALUES(30,4,3,'DEFAULT_DEVICE','torch.utils._device.CURRENT_DEVICE','utils_device.CURRENT_DEVICE == None',NULL);
INSERT INTO "guard" VALUES(31,4,4,'TYPE_MATCH','L[''n'']','___check_type_id(L[''n''], 139816459402464), type=<class ''int''>','File "/tmp/small.py", line 4, in f');
INSERT INTO "guard" VALUES(32,4,5,'TENSOR_MATCH','L[''x'']','check_tensor(L[''x''], Tensor, DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU), torch.float64, device=None, requires_grad=False, size=[None], stride=[1])','File "/tmp/small.py", line 4, in f');
INSERT INTO "guard" VALUES(33,4,6,'DIMENSION_DYNAMIC_MARKING_GUARD','L[''x'']','hasattr(L[''x''], ''_dynamo_dynamic_indices'') == False and hasattr(L[''x''], ''_dynamo_weak_dynamic_indices'') == False and hasattr(L[''x''], ''_dynamo_unbacked_indices'') == False and hasattr(L[''x''], ''_dynamo_s','File "/tmp/small.py", line 4, in f');
INSERT INTO "guard" VALUES(34,4,7,'ID_MATCH','G[''torch'']','___check_obj_id(G[''torch''], 139816449949536), type=<class ''module''>','File "/tmp/small.py", line 5, in f');
INSERT INTO "guard" VALUES(35,4,8,'ID_MATCH','G[''torch'']._dynamo','___check_obj_id(G[''torch'']._dynamo, 139815874323904), type=<class ''module''>','File "/tmp/small.py", line 5, in f');
INSERT INTO "guard" VALUES(36,4,9,'ID_MATCH','G[''torch'']._dynamo.graph_break.__code__','___check_obj_id(G[''torch'']._dynamo.graph_break.__code__, 139815830156272), type=<class ''code''>','File "/tmp/small.py", line 5, in f');
INSERT INTO "guard" VALUES(37,4,10,'LAMBDA_GUARD','L[''x''].size()[0]','2 <= L[''x''].size()[0]','File "/tmp/small.py", line 4, in f');
INSERT INTO "guard" VALUES(38,5,0,'LAMBDA_GUARD','saved tensors hooks','torch._functorch.aot_autograd.utils.top_saved_tensors_hooks ids == None',NULL);
INSERT INTO "guard" VALUES(39,5,1,'GLOBAL_STATE','global state','___check_global_state() against {"allow_bf16_reduce":0,"allow_fp16_reduce":0,"allow_tf32":false,"autocast_state":{"cached_enabled":true,"dtype":[15,5,5,15,5,5,15,15,5,5],"enabled":[false,false,false,f',NULL);
INSERT INTO "guard" VALUES(40,5,2,'TORCH_FUNCTION_MODE_STACK','torch function modes','___check_torch_function_mode_stack()',NULL);
INSERT INTO "guard" VALUES(41,5,3,'DEFAULT_DEVICE','torch.utils._device.CURRENT_DEVICE','utils_device.CURRENT_DEVICE == None',NULL);
INSERT INTO "guard" VALUES(42,5,4,'TENSOR_MATCH','L[''y'']','check_tensor(L[''y''], Tensor, DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU), torch.float64, device=None, requires_grad=False, size=[None], stride=[1])','File "/tmp/small.py", line 6, in torch_dynamo_resume_in_f_at_5');
INSERT INTO "guard" VALUES(43,5,5,'DIMENSION_DYNAMIC_MARKING_GUARD','L[''y'']','hasattr(L[''y''], ''_dynamo_dynamic_indices'') == False and hasattr(L[''y''], ''_dynamo_weak_dynamic_indices'') == False and hasattr(L[''y''], ''_dynamo_unbacked_indices'') == False and hasattr(L[''y''], ''_dynamo_s','File "/tmp/small.py", line 6, in torch_dynamo_resume_in_f_at_5');
INSERT INTO "guard" VALUES(44,5,6,'LAMBDA_GUARD','L[''y''].size()[0]','2 <= L[''y''].size()[0]','File "/tmp/small.py", line 6, in torch_dynamo_resume_in_f_at_5');
INSERT INTO "guard_check" VALUES(1,13,0,1,'fail',5,5,37071);
INSERT INTO "guard_check" VALUES(2,14,0,2,'pass',NULL,6,34929);
INSERT INTO "guard_check" VALUES(3,15,0,3,'pass',NULL,10,10191);
INSERT INTO "guard_check" VALUES(4,16,0,2,'pass',NULL,6,1872);
INSERT INTO "guard_check" VALUES(5,17,0,3,'fail',22,5,36221);
INSERT INTO "guard_check" VALUES(6,17,1,1,'fail',6,6,10531);
INSERT INTO "guard_check" VALUES(7,18,0,2,'fail',15,5,28261);
INSERT INTO "guard_check" VALUES(8,19,0,4,'fail',32,5,46382);
INSERT INTO "guard_check" VALUES(9,19,1,3,'pass',NULL,10,21844);
INSERT INTO "guard_check" VALUES(10,20,0,5,'fail',42,5,46692);
INSERT INTO "guard_check" VALUES(11,20,1,2,'pass',NULL,6,8039);
INSERT INTO "guard_check" VALUES(12,21,0,3,'pass',NULL,10,4465);
INSERT INTO "guard_check" VALUES(13,22,0,2,'pass',NULL,6,1631);
INSERT INTO "guard_check" VALUES(14,23,0,3,'pass',NULL,10,2072);
INSERT INTO "guard_check" VALUES(15,24,0,2,'pass',NULL,6,1361);
INSERT INTO "guard_check" VALUES(16,25,0,3,'fail',22,5,1401);
INSERT INTO "guard_check" VALUES(17,25,1,4,'pass',NULL,11,9010);
INSERT INTO "guard_check" VALUES(18,26,0,2,'fail',15,5,1661);
INSERT INTO "guard_check" VALUES(19,26,1,5,'pass',NULL,7,3153);
INSERT INTO "listing" VALUES(1,'graph','__compiled_fn_2_9570532d_2784_4ed2_835f_36b7d3758529:
    # /tmp/small.py:4
    l_x_: float32[4] = L_x_
    y: float32[4] = _operator.mul(l_x_, 2)
    return (y,)');
INSERT INTO "listing" VALUES(1,'original_bytecode','    2        0 RESUME                   0
    4        2 LOAD_FAST                0 (x)
             4 LOAD_FAST                1 (n)
             6 BINARY_OP                5 (*)
            10 STORE_FAST               2 (y)
    5       12 LOAD_GLOBAL              0 (torch)
            24 LOAD_ATTR');
INSERT INTO "listing" VALUES(1,'modified_bytecode','    2        0 RESUME                   0
             2 LOAD_GLOBAL              7 (NULL + __compiled_fn_2_9570532d_2784_4ed2_835f_36b7d3758529)
            14 LOAD_GLOBAL              9 (NULL + __import_torch_dot__dynamo_dot_utils)
            26 LOAD_ATTR                5 (record_pregraph_bytecod');
INSERT INTO "listing" VALUES(1,'guards','+- root
| +- LAMBDA_GUARD: torch._functorch.aot_autograd.utils.top_saved_tensors_hooks ids == None  # _dynamo/output_graph.py:1135 in init_ambient_guards
| +- GLOBAL_STATE: ___check_global_state() against {"allow_bf16_reduce":0,"allow_fp16_reduce":0,"allow_tf32":false,"autocast_state":{"cached_enabl');
INSERT INTO "listing" VALUES(12,'graph','__compiled_fn_5_2f555997_af2f_46e6_9dab_173d725f209f:
    # /tmp/small.py:6
    l_y_: float32[4] = L_y_
    add: float32[4] = _operator.add(l_y_, 1)
    return (add,)');
INSERT INTO "listing" VALUES(12,'original_bytecode','    5        0 RESUME                   0
             2 LOAD_CONST               2 (True)
             4 STORE_FAST               6 (__is_tracing_resume_prologue)
             6 LOAD_FAST                2 (___stack0)
             8 LOAD_CONST               3 (False)
            10 STORE_FAST       ');
INSERT INTO "listing" VALUES(12,'modified_bytecode','    5        0 RESUME                   0
             2 LOAD_GLOBAL              7 (NULL + __compiled_fn_5_2f555997_af2f_46e6_9dab_173d725f209f)
            14 LOAD_GLOBAL              9 (NULL + __import_torch_dot__dynamo_dot_utils)
            26 LOAD_ATTR                5 (record_pregraph_bytecod');
INSERT INTO "listing" VALUES(12,'guards','+- root
| +- LAMBDA_GUARD: torch._functorch.aot_autograd.utils.top_saved_tensors_hooks ids == None  # _dynamo/output_graph.py:1135 in init_ambient_guards
| +- GLOBAL_STATE: ___check_global_state() against {"allow_bf16_reduce":0,"allow_fp16_reduce":0,"allow_tf32":false,"autocast_state":{"cached_enabl');
INSERT INTO "listing" VALUES(13,'graph','__compiled_fn_8_5b216421_8fc8_4f4d_8b94_6bbbfb51bcc9:
    # /tmp/small.py:4
    l_x_: float32[4] = L_x_
    l_n_ = L_n_
    y: float32[4] = _operator.mul(l_x_, l_n_)
    return (y,)');
INSERT INTO "listing" VALUES(13,'original_bytecode','    2        0 RESUME                   0
    4        2 LOAD_FAST                0 (x)
             4 LOAD_FAST                1 (n)
             6 BINARY_OP                5 (*)
            10 STORE_FAST               2 (y)
    5       12 LOAD_GLOBAL              0 (torch)
            24 LOAD_ATTR');
INSERT INTO "listing" VALUES(13,'modified_bytecode','    2        0 RESUME                   0
             2 LOAD_GLOBAL              7 (NULL + __compiled_fn_8_5b216421_8fc8_4f4d_8b94_6bbbfb51bcc9)
            14 LOAD_GLOBAL              9 (NULL + __import_torch_dot__dynamo_dot_utils)
            26 LOAD_ATTR                5 (record_pregraph_bytecod');
INSERT INTO "listing" VALUES(13,'guards','+- root
| +- LAMBDA_GUARD: torch._functorch.aot_autograd.utils.top_saved_tensors_hooks ids == None  # _dynamo/output_graph.py:1135 in init_ambient_guards
| +- GLOBAL_STATE: ___check_global_state() against {"allow_bf16_reduce":0,"allow_fp16_reduce":0,"allow_tf32":false,"autocast_state":{"cached_enabl');
INSERT INTO "listing" VALUES(14,'graph','__compiled_fn_12_49f9ddf2_ca8e_42bc_bf5c_e4ff119acf42:
    # /tmp/small.py:4
    s77 = s77
    l_x_: float64[s77] = L_x_
    l_n_ = L_n_
    y: float64[s77] = _operator.mul(l_x_, l_n_)
    return (y,)');
INSERT INTO "listing" VALUES(14,'original_bytecode','    2        0 RESUME                   0
    4        2 LOAD_FAST                0 (x)
             4 LOAD_FAST                1 (n)
             6 BINARY_OP                5 (*)
            10 STORE_FAST               2 (y)
    5       12 LOAD_GLOBAL              0 (torch)
            24 LOAD_ATTR');
INSERT INTO "listing" VALUES(14,'modified_bytecode','    2        0 RESUME                   0
             2 LOAD_GLOBAL              7 (NULL + __compiled_fn_12_49f9ddf2_ca8e_42bc_bf5c_e4ff119acf42)
            14 LOAD_GLOBAL              9 (NULL + __import_torch_dot__dynamo_dot_utils)
            26 LOAD_ATTR                5 (record_pregraph_byteco');
INSERT INTO "listing" VALUES(14,'guards','+- root
| +- LAMBDA_GUARD: torch._functorch.aot_autograd.utils.top_saved_tensors_hooks ids == None  # _dynamo/output_graph.py:1135 in init_ambient_guards
| +- GLOBAL_STATE: ___check_global_state() against {"allow_bf16_reduce":0,"allow_fp16_reduce":0,"allow_tf32":false,"autocast_state":{"cached_enabl');
INSERT INTO "listing" VALUES(15,'graph','__compiled_fn_15_0a2cfb13_746b_41b2_9d82_028eeff2b5c8:
    # /tmp/small.py:6
    s17 = s17
    l_y_: float64[s17] = L_y_
    add: float64[s17] = _operator.add(l_y_, 1)
    return (add,)');
INSERT INTO "listing" VALUES(15,'original_bytecode','    5        0 RESUME                   0
             2 LOAD_CONST               2 (True)
             4 STORE_FAST               6 (__is_tracing_resume_prologue)
             6 LOAD_FAST                2 (___stack0)
             8 LOAD_CONST               3 (False)
            10 STORE_FAST       ');
INSERT INTO "listing" VALUES(15,'modified_bytecode','    5        0 RESUME                   0
             2 LOAD_GLOBAL              7 (NULL + __compiled_fn_15_0a2cfb13_746b_41b2_9d82_028eeff2b5c8)
            14 LOAD_GLOBAL              9 (NULL + __import_torch_dot__dynamo_dot_utils)
            26 LOAD_ATTR                5 (record_pregraph_byteco');
INSERT INTO "listing" VALUES(15,'guards','+- root
| +- LAMBDA_GUARD: torch._functorch.aot_autograd.utils.top_saved_tensors_hooks ids == None  # _dynamo/output_graph.py:1135 in init_ambient_guards
| +- GLOBAL_STATE: ___check_global_state() against {"allow_bf16_reduce":0,"allow_fp16_reduce":0,"allow_tf32":false,"autocast_state":{"cached_enabl');
INSERT INTO "lookup" VALUES(1,1,1,4573,22849156527,585547614,2,1,0,1);
INSERT INTO "lookup" VALUES(12,12,1,6829,23452083759,223741049,2,2,0,12);
INSERT INTO "lookup" VALUES(13,13,1,4573,23692840785,221973894,2,3,1,13);
INSERT INTO "lookup" VALUES(14,14,1,6829,23914997336,42878,1,2,1,NULL);
INSERT INTO "lookup" VALUES(15,15,1,4573,23915182075,11133,1,3,1,NULL);
INSERT INTO "lookup" VALUES(16,16,1,6829,23915207984,2243,1,2,1,NULL);
INSERT INTO "lookup" VALUES(17,17,1,4573,23918424536,495625600,2,4,2,14);
INSERT INTO "lookup" VALUES(18,18,1,6829,24414278515,243256125,2,5,1,15);
INSERT INTO "lookup" VALUES(19,129,2,4573,24661748241,80041,1,3,2,NULL);
INSERT INTO "lookup" VALUES(20,130,2,6829,24662190452,56594,1,2,2,NULL);
INSERT INTO "lookup" VALUES(21,131,2,4573,24662398908,5386,1,3,1,NULL);
INSERT INTO "lookup" VALUES(22,132,2,6829,24662418831,1982,1,2,1,NULL);
INSERT INTO "lookup" VALUES(23,133,2,4573,24662444269,2433,1,3,1,NULL);
INSERT INTO "lookup" VALUES(24,134,2,6829,24662456293,1672,1,2,1,NULL);
INSERT INTO "lookup" VALUES(25,135,2,4573,24662488499,11023,1,4,2,NULL);
INSERT INTO "lookup" VALUES(26,136,2,6829,24662546885,5357,1,5,2,NULL);
INSERT INTO "loss" VALUES(1,1,5,3,'somewhere');
INSERT INTO "meta" VALUES('clock','tsc');
INSERT INTO "meta" VALUES('command','["small.py"]');
INSERT INTO "meta" VALUES('dyntrace_version','0.1.0');
INSERT INTO "meta" VALUES('frame_count',16);
INSERT INTO "meta" VALUES('host','here');
INSERT INTO "meta" VALUES('min_duration_ns',0);
INSERT INTO "meta" VALUES('open_frame_count',0);
INSERT INTO "meta" VALUES('span_ns',24662582075);
INSERT INTO "meta" VALUES('started_unix_ns',1795342103751264537);
INSERT INTO "meta" VALUES('state','complete');
INSERT INTO "meta" VALUES('values','all');
INSERT INTO "process" VALUES(1,16527,NULL,NULL,NULL,'["python3","small.py"]','/usr/bin/python3','3.11.7','2.13.0+cpu','decided','shim',NULL,232244137,30335270151,0,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "recompile_cause" VALUES(13,1,0,5,'EQUALS_MATCH','L[''n'']','value',NULL,'2','3','L[''n''] == 2 # y = x * n # mp/privt/small.py:4 in f','observed');
INSERT INTO "recompile_cause" VALUES(14,3,0,22,'TENSOR_MATCH','L[''x''].dtype','dtype',NULL,'torch.float32','torch.float64','tensor ''L[''x'']'' dtype mismatch. expected Float, actual Double','observed');
INSERT INTO "recompile_cause" VALUES(14,3,0,22,'TENSOR_MATCH','L[''x''].size()[0]','size',0,'4','6','check_tensor(L[''x''], Tensor, DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU), torch.float32, device=None, requires_grad=False, size=[4], stride=[1]) did not hold','observed');
INSERT INTO "recompile_cause" VALUES(14,1,0,6,'TENSOR_MATCH','L[''x''].dtype','dtype',NULL,'torch.float32','torch.float64','tensor ''L[''x'']'' dtype mismatch. expected Float, actual Double','observed');
INSERT INTO "recompile_cause" VALUES(14,1,0,6,'TENSOR_MATCH','L[''x''].size()[0]','size',0,'4','6','check_tensor(L[''x''], Tensor, DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU), torch.float32, device=None, requires_grad=False, size=[4], stride=[1]) did not hold','observed');
INSERT INTO "recompile_cause" VALUES(15,2,0,15,'TENSOR_MATCH','L[''y''].dtype','dtype',NULL,'torch.float32','torch.float64','tensor ''L[''y'']'' dtype mismatch. expected Float, actual Double','observed');
INSERT INTO "recompile_cause" VALUES(15,2,0,15,'TENSOR_MATCH','L[''y''].size()[0]','size',0,'4','6','check_tensor(L[''y''], Tensor, DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU), torch.float32, device=None, requires_grad=False, size=[4], stride=[1]) did not hold','observed');
INSERT INTO "signature" VALUES(1,'x: Tensor float32[4] cpu, n: int 2');
INSERT INTO "signature" VALUES(2,'args: tuple[0], kwargs: dict[0], fn: function, recursive: bool True');
INSERT INTO "signature" VALUES(3,'fn: function, recursive: bool True, reason: NoneType None, wrapping: bool False');
INSERT INTO "signature" VALUES(4,'fn: function');
INSERT INTO "signature" VALUES(5,'self: DisableContext, msg: NoneType None, wrapping: bool False, __class__: type');
INSERT INTO "signature" VALUES(6,'self: DisableContext, callback: NoneType None, on_enter: function, backend_ctx_ctor: ABCMeta, patch_fn: function, first_ctx: bool False, fullgraph: bool False, error_on_graph_break: NoneType None, export: bool False, dynamic: NoneType None, compiler_config: NoneType None, package: NoneType None, hooks: NoneType None, isolate_recompiles: bool False, shapes_spec: NoneType None, __class__: type');
INSERT INTO "signature" VALUES(7,'');
INSERT INTO "signature" VALUES(8,'fn: NoneType None');
INSERT INTO "signature" VALUES(9,'self: DisableContext, fn: function');
INSERT INTO "signature" VALUES(10,'args: tuple[0], kwargs: dict[0], fn: function, self: DisableContext');
INSERT INTO "signature" VALUES(11,'msg: str ''''');
INSERT INTO "signature" VALUES(12,'__nested_resume_fns: list[0], __nested_frame_values: list[0], ___stack0: NoneType None, y: Tensor float32[4] cpu');
INSERT INTO "signature" VALUES(13,'x: Tensor float32[4] cpu, n: int 3');
INSERT INTO "signature" VALUES(14,'x: Tensor float64[6] cpu, n: int 2');
INSERT INTO "signature" VALUES(15,'__nested_resume_fns: list[0], __nested_frame_values: list[0], ___stack0: NoneType None, y: Tensor float64[6] cpu');
INSERT INTO "thread" VALUES(1,1,16527,'MainThread');
INSERT INTO "thread" VALUES(2,1,17687,NULL);
