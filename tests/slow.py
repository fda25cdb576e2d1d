"""Lists the cases of the largest grids that run by default. All others are slow: `-m slow` runs them, `-m ""` all.

A test that is not listed here runs with all its cases, unless it is marked itself. `tests/conftest.py` applies the
list.
"""

import pytest

# One mechanism of each kind: pairwise, linear (a sum of features), with learned projections over all tokens, and a
# wrapper around a gated memory with inputs per token and learned arrays.
KINDS = ("softmax", "linear", "linformer", "short-convolution")

# One mechanism of each kind that decodes: pairwise, linear (a sum of features), a memory with inputs per token, one
# with inputs per query, and a wrapper.
DECODING = ("softmax", "linear", "gated-delta", "log-linear", "short-convolution")

POSITIONS = ("sinusoidal", "shaw", "rotary")  # added to the inputs, added to the keys, rotating queries and keys

# Maps a file, or a file and a test, to the ids or parameter values that run by default. If there are none, the whole
# test is slow, and the comment names the test that checks the same property.
DEFAULT: dict[str, tuple[str, ...]] = {
    # Every mechanism in every form.
    "mechanisms/test_contract_absence.py": KINDS,
    "mechanisms/test_contract_drawn.py": KINDS,
    "mechanisms/test_contract_forms.py": KINDS,
    "mechanisms/test_contract_gradients.py": KINDS,
    "mechanisms/test_contract_numbers.py": KINDS,
    "mechanisms/test_edges.py::test_an_edge_list_equals_its_dense_mask_with_gradients": ("softmax", "linear", "gat"),
    "mechanisms/test_edges.py::test_padding_of_an_edge_list_has_no_weight": ("softmax", "linear", "gat"),
    "mechanisms/test_edges.py::test_position_dependent_mechanisms_depend_on_node_numbers": (
        *("softmax", "cosformer", "turned"),
    ),
    "mechanisms/test_delta.py::test_extreme_strengths_gates_and_keys": ("gated-delta",),
    "mechanisms/test_equations.py::test_blocks_give_the_equation_too": ("stick-breaking", "path", "log-linear"),
    "mechanisms/test_equations.py::test_both_directions_are_the_sum_of_two_passes": ("gated-delta",),
    "mechanisms/test_equations.py::test_inputs_at_their_ends_keep_numbers_finite": ("mlstm", "forgetting", "path"),
    "mechanisms/test_kinds.py::test_outputs_change_with_positions_if_that_is_declared": ("linear", "window"),
    "mechanisms/test_linear.py::test_all_forms_equal_the_recurrence": ("favor+", "hedgehog", "cosformer"),
    "mechanisms/test_inputs.py::test_no_queries_give_no_output_and_no_keys_are_fully_masked": KINDS,
    "mechanisms/test_inputs.py::test_every_kind_accepts_integer_inputs": ("softmax", "linear", "delta"),
    "mechanisms/test_inputs.py::test_inputs_without_one_entry_per_token_are_refused_by_name": DECODING,
    "mechanisms/test_kinds.py::test_a_module_projects_an_input_per_query_for_every_query_head": (
        # an_extra_input_per_query_reaches_every_form, modules/test_grouped.py
    ),
    "mechanisms/test_linear.py::test_values_and_gradients_are_finite_at_the_extremes": ("exp", "relu"),
    "mechanisms/test_short_convolution.py::test_it_is_the_mechanism_of_convolved_queries_and_keys_with_padding_and"
    "_packing": ("None-softmax", "2-gated-delta"),
    "mechanisms/test_sinkhorn.py::test_it_equals_its_definition": ("12-12", "5-11"),
    "mechanisms/test_softmax.py::test_decoding_equals_attending_for_every_score": ("scaled_dot", "location", "gat"),
    "mechanisms/test_softcap.py::test_it_is_the_equation_in_every_form": ("3-scaled_dot",),
    "mechanisms/test_softcap.py::test_gradients_are_those_of_finite_differences": (
        "False-scaled_dot-None",
        "False-cosine-3",
        "True-scaled_dot-3",
    ),
    "mechanisms/test_sparse.py::test_it_equals_softmax_over_its_pattern": ("window", "bigbird"),
    "mechanisms/test_sparse.py::test_packed_and_padded_tokens_keep_their_own_pattern": ("window", "bigbird"),
    "mechanisms/test_sparse.py::test_the_efficient_form_equals_the_definition_for_other_lengths": ("window", "bigbird"),
    "mechanisms/test_synthesizer.py::test_it_equals_the_formula_under_any_mask": ("Causal()-dense", "Full()-random"),
    "bench/test_calls.py::test_every_mechanism_can_be_benchmarked": KINDS,
    "mechanisms/test_inputs.py::test_decoding_continues_from_given_positions": ("softmax",),
    "mechanisms/test_linear.py::test_a_pair_kernel_equals_the_product_of_features": ("narrow-True",),
    "mechanisms/test_linear.py::test_rows_beyond_the_length_are_accepted_in_all_blocks_if_positions_are_within": (
        # cosformer_beyond_its_length
    ),
    "mechanisms/test_maps.py::test_the_map_is_the_mean_over_the_channels": ("3",),
    "mechanisms/test_reformer.py::test_sorted_buckets_equal_all_pairs": ("causal",),
    "mechanisms/test_reformer.py::test_the_number_of_visited_blocks_is_near_the_declared_one": ("512",),
    "mechanisms/test_sparse.py::test_gathering_keys_around_a_center_equals_all_pairs": ("scaled_dot",),
    "analysis/test_cost.py::test_counted_flops_grow_as_declared": (*KINDS, "taylor"),
    "analysis/test_totals.py::test_weights_of_mechanisms_without_denominator_are_unchanged": ("mechanism3",),
    "bench/test_peer_parity_layers.py::test_a_module_is_the_same_whole_and_token_by_token_and_every_parameter_has_a"
    "_gradient": ("layer",),
    "models/test_associative_memory.py::test_every_decoding_mechanism_answers_one_or_many_queries": KINDS,
    "models/test_classifier.py::test_every_bidirectional_mechanism_overfits_a_few_examples": ("linear",),
    "models/test_classifier.py::test_a_class_token_attends_to_every_word_in_one_layer": ("softmax",),
    "models/test_language.py::test_two_layers_overfit_eight_sequences_and_greedy_decoding_is_the_argmax_of_the"
    "_parallel_form": ("softmax",),
    "models/test_transformer.py::test_decoding_step_by_step_equals_teacher_forcing_and_padding_changes_nothing": (
        *("softmax", "short-convolution"),
    ),
    # The parts of an attention layer: all parts together, and one case with a part that "all" excludes.
    "modules/test_multi_head.py::test_a_causal_layer_is_the_formula_written_out": ("all", "norm after gate"),
    "modules/test_multi_head.py::test_token_by_token_equals_the_whole": ("softmax-all", "gated-delta-convolution"),
    "modules/test_multi_head.py::test_padding_before_and_after_changes_nothing": ("all",),
    "modules/test_multi_head.py::test_every_parameter_has_a_gradient_that_finite_differences_confirm": ("all",),
    "modules/test_multi_head.py::test_a_language_model_decodes_as_it_reads": (
        # token_by_token_equals_the_whole, models/test_patterns.py
    ),
    "modules/test_multi_head.py::test_norms_stand_where_they_are_asked_for": ("True-True-True",),
    "modules/test_multi_head.py::test_the_own_value_is_excluded_in_half_precision_too": ("0.0",),
    "modules/test_multi_head.py::test_dropout_of_weights_is_that_of_the_weights_of_every_head": (
        "1-softmax-blockwise",
        "2-linear",
    ),
    "modules/test_attention.py::test_extra_values_are_averaged_with_the_same_weights_under_any_padding": (
        "left-LocalP(width=2, score=scaled_dot, length=512, softcap=None)",
        "within-Synthesizer(length=6, fixed=False)",
    ),
    "models/test_patterns.py::test_every_layer_has_gradients": (),  # modules/test_multi_head.py, test_encoder.py
    "models/test_patterns.py::test_the_scan_over_periods_is_the_layers_one_by_one": ("False-9",),
    "modules/test_latent_attention.py::test_decoding_from_the_small_vectors_equals_computing_keys_and_values": (
        "softmax-default",
    ),
    "modules/test_latent_attention.py::test_it_is_the_equations_written_out": ("low queries", "no rotation"),
    "modules/test_grouped.py::test_decoding_in_blocks_or_single_tokens_equals_the_parallel_form": (*KINDS, "delta"),
    "modules/test_grouped.py::test_the_cache_has_one_state_per_key_head": DECODING,
    "functional/test_functional.py::test_under_any_mask_it_is_a_loop_over_examples_and_heads": ("softmax", "nystrom"),
    "functional/test_functional.py::test_softmax_is_that_of_jax": ("4-2-softmax",),
    "functional/test_functional.py::test_vmap_and_bfloat16": ("gated-linear",),
    # Every model, position and size.
    "models/test_classifier.py::test_the_amount_of_padding_has_no_effect": POSITIONS,
    "models/test_scale_embeddings.py::test_unscaled_embeddings_have_small_initial_values": ("bahdanau",),
    "models/test_seq2seq.py::test_it_overfits_eight_sequences_and_greedy_decoding_is_the_argmax_of_teacher_forcing": (
        # decoding_equals_teacher_forcing, padding_has_no_gradient, models/test_transformer.py
    ),
    "models/test_transformer.py::test_computing_layers_again_in_the_backward_pass_changes_nothing": (
        # models/test_encoder.py
    ),
    "models/test_transformer.py::test_every_position_works_in_every_precision": POSITIONS,
    "models/test_transformer.py::test_decoding_equals_teacher_forcing_with_learned_and_one_sided_positions": (
        "learned",
    ),
    "models/test_transformer.py::test_decoding_equals_teacher_forcing_with_other_layers": (
        "{'norm_first': False, 'norm': 'rms', 'key_heads': 1}",
    ),
    "models/test_unpadded.py::test_no_padding_equals_all_tokens_kept": ("attention",),
    "modules/test_partial_rotary.py::test_every_form_agrees_and_only_distances_count": ("yarn", "linear"),
    "modules/test_partial_rotary.py::test_a_share_of_a_head_rotates": ("interleaved-0.75-6", "halves-0.5-4"),
    "modules/test_rotary_features.py::test_every_form_is_the_equation": ("elu+1-rotary-2d",),
    "modules/test_rotary_features.py::test_gradients_are_those_of_finite_differences": ("elu+1",),
    "modules/test_rotary_features.py::test_a_module_rotates_features_in_each_form": (
        # every_form_is_the_equation, padding_has_no_effect
    ),
    "decoding/test_base.py::test_search_scores_equal_teacher_forced_scores": (
        "Linear(feature=EluPlusOne(), normalise=True, block=64)",
    ),
    "decoding/test_sample.py::test_only_truncated_symbols_are_never_drawn": (
        "{'top_k': 3}-{2, 3, 4}",
        "{'top_p': 0.5}-{4}",
        "{'top_k': 2, 'top_p': 0.7}-{2, 4}",
        "{'temperature': 1e-60}-{4}",
    ),
    "decoding/test_sample.py::test_sequences_are_drawn_with_their_probability": (
        "Sample(temperature=2.0, top_k=None, top_p=0.7, best=4096)",
        "Sample(temperature=1.0, top_k=2, top_p=0.6, best=4096)",
    ),
    "ops/test_delta.py::test_gradients_through_gates_and_strengths_agree_with_finite_differences": ("1",),
    "tasks/base/test_token_prediction.py::test_the_loss_is_the_cross_entropy_of_the_logits": ("language",),
    "tasks/text/test_pairing.py::test_the_length_includes_source_marks": ("model1-both-2",),
    "tasks/text/test_pairing.py::test_sources_of_every_task_end_with_the_end_mark": ("Dates", "Parallel"),
    "tasks/speech/test_speech.py::test_a_wide_window_equals_full_attention_and_a_narrow_one_is_local": (
        # mechanisms/test_sparse.py
    ),
    "tasks/synthetic/test_group_words.py::test_cyclic_groups_are_sums": ("task2-7",),
    "training/test_loop.py::test_interrupted_and_resumed_gives_the_same_bits_and_the_same_record": ("toy",),
    "training/test_optimiser.py::test_weight_decay_applies_to_matrices_only": ("short-convolution", "positions"),
    "modules/test_position.py::test_shifted_positions_are_those_of_the_previous_row": POSITIONS,
    "modules/test_position.py::test_decoding_equals_the_parallel_form_and_depends_on_order": POSITIONS,
    "modules/test_recurrent.py::test_two_bidirectional_layers_equal_the_formula_under_any_padding": ("lstm",),
    "models/test_encoder.py::test_the_amount_of_padding_has_no_effect": POSITIONS,
    "models/test_language.py::test_token_by_token_equals_the_whole_and_padding_changes_nothing": (
        "Sinusoidal()",
        "Rotary2D(columns=2, base=10000.0)",
    ),
    "models/test_scale_embeddings.py::test_unscaled_embeddings_are_used_unchanged": ("luong",),
    "models/test_seq2seq.py::test_padding_has_no_gradient_and_all_parameters_have_one": ("bahdanau",),
    "models/test_transformer.py::test_parameters_of_a_mechanism_do_not_change_other_initial_values": ("gated-linear",),
    "models/test_transformer.py::test_parameters_of_positions_have_gradients": ("Shaw(clip=16)",),
    "modules/test_grouped.py::test_positions_are_those_of_query_heads": ("t5", "rotary"),
    "modules/test_recurrent.py::test_attending_step_by_step_equals_attending_at_once_and_ignores_padding": (
        "additive",
        "sink",
        "softmax",
        "linear",
    ),
    "modules/test_rotary_features.py::test_outputs_depend_on_distance_alone": ("elu+1",),
    "modules/test_spectral.py::test_it_is_the_largest_singular_value": (
        "random-1",
        "wide-1e-12",
        "close-1000000000000.0",
    ),
    "ops/test_blockwise.py::test_dtypes_are_kept_and_large_scores_stay_finite": ("bfloat16",),
    "ops/test_blockwise.py::test_every_score_and_its_parameters": ("scaled_dot", "additive"),
    "ops/test_blockwise.py::test_no_array_of_all_pairs_is_created": ("causal",),
    "ops/test_conv.py::test_one_dimensional_convolution_equals_the_sum": ("2-2", "3-1"),
    "ops/test_conv.py::test_two_dimensional_convolution_equals_the_sum": ("(3, 3)-2", "(2, 3)-1"),
    "ops/test_conv.py::test_its_gradients_agree_with_finite_differences": (),  # test_dense: the same product
    "ops/test_dense.py::test_it_is_the_matrix_product_in_every_order": ("lanes", "remat in a scan", "forward mode"),
    "ops/test_listed.py::test_an_edge_list_equals_its_dense_mask": ("beyond", "twice"),
    "ops/test_decay.py::test_a_closed_gate_leaves_later_tokens_exact": ("64-4", "32-1"),
    "ops/test_decay.py::test_chunks_of_any_size_equal_the_recurrence": ("13-5-4", "37-16-1"),
    "ops/test_decay.py::test_gates_that_overflow_as_exponentials_of_sums_give_finite_values_and_gradients": (
        "1--10000.0",
        "4--100.0",
    ),
    "ops/test_delta.py::test_chunks_of_any_size_equal_the_recurrence": ("13-5-4", "37-16-1"),
    "models/test_gat.py::test_a_node_depends_on_nodes_two_steps_away_and_no_further": ("gat",),
    "models/test_gat.py::test_lanes_and_dropout": ("gcn",),
    "ops/test_entropy.py::test_blocks_of_any_size_equal_all_logits_at_once": ("10 at once-0.1-True",),
    "ops/test_entropy.py::test_gradients_equal_those_of_all_logits_at_once": ("10 at once-0.1-True",),
    "ops/test_entropy.py::test_lanes_are_independent": ("10 at once",),
    "ops/test_entropy.py::test_the_loss_equals_pytorch": ("10 at once-0.1",),
    "data/synthetic/test_pathfinder.py::test_pixels_between_the_dots_predict_short_curves_and_long_ones_less": (
        "12-2-0-0.95-1",
    ),
    "data/synthetic/test_pathfinder.py::test_a_linear_classifier_does_not_predict_the_answer": (),  # no_simple_measure
    "data/synthetic/test_pathfinder.py::test_positions_of_the_dots_do_not_predict_the_answer": (),  # no_simple_measure
    "data/text/test_multi30k.py::test_typed_text_is_tokenised_as_published": (),  # punctuation_is_separated
    "lab/statistics/test_coverage.py::test_equal_variants_are_rarely_called_different": ("t3-3",),
    # Complete published data sets.
    "data/io/test_sources.py::test_the_published_files_are_verified": ("cmudict", "fsdd"),
    "data/text/test_scan.py::test_the_published_splits": ("simple",),
    "tasks/speech/test_spoken.py::test_digits_of_the_official_split": (),  # data/audio/test_spoken.py
    "tasks/text/test_g2p.py::test_the_published_dictionary": (),  # data/text/test_cmudict.py
    "tasks/text/test_translation.py::test_published_captions": (),  # data/text/test_multi30k.py
    # Tests that train a model of their own or start a process.
    "test_notebooks.py::test_a_notebook_runs_and_draws_its_figures": ("attention_by_hand",),
    "lab/results/test_ties.py::test_the_loss_decides_between_rates_with_equal_scores": (),  # records, loss_of_a_lane
    "lab/test_classification.py::test_two_phases_are_one_run": (),  # models/test_bert.py, tasks/text/test_sentences.py
    "lab/trained/test_score.py::test_the_command_prints_what_the_table_does_and_keeps_the_answers": ("text",),
    "faults/test_faults.py::test_a_few_cases_of_each_fault": ("kill",),
    # Other tests cover the remaining faults. trainers: test_launch, storage/test_lock. surroundings: cli/test_streams.
    # sigterm: training/test_loop. numbers: training/test_loop, training/test_state.
    "lab/results/test_ties.py::test_pairs_of_single_words_select_the_rate_that_learns": (),  # test_launch
    "lab/runs/test_answer_table.py::test_a_run_stores_test_answers_of_every_seed_at_the_selected_rate": ("rates1",),
    "lab/study/test_user_code_runs.py::test_a_run_is_loaded_with_the_file_that_defines_its_code": ("sample",),
    "lab/trained/test_snapshot.py::test_class_token_is_the_first_row": (
        "words-token",
        "patches-mean",
    ),
    "lab/execution/test_variant.py::test_files_removed_during_training": ("metrics.jsonl",),
    "lab/study/test_recipe.py::test_every_shipped_file_takes_a_variant_by_name_and_a_field_for_all": (
        "dates",
        "published_layers",
    ),
    "lab/study/test_sibling_imports.py::test_workers_and_trained_runs_find_it": (),  # test_workers, its other tests
    "lab/execution/test_workers.py::test_a_failed_variant_is_reported_and_the_others_are_trained": (),  # test_launch
    "lab/execution/test_workers.py::test_workers_know_a_registry_entry_of_a_file_whose_class_is_attnlab_s": (),
    "lab/test_classification.py::test_image_generation_has_maps_if_the_model_has_attention": (),  # models/test_sagan.py
    "lab/execution/test_artifacts.py::test_a_mechanism_with_extras_as_wide_as_the_values_trains_and_has_maps": (),
    "lab/trained/test_inspect.py::test_detection_maps_have_positions_and_queries": (),  # test_snapshot
    "lab/test_problems.py::test_a_study_of_this_task_runs_and_can_be_sampled": ("associations",),
    "lab/test_problems.py::test_a_model_without_attention_has_no_map": (),  # the case above, lab/trained/test_sample.py
    "lab/planning/test_matching.py::test_a_run_keeps_the_matched_configuration_and_finds_it_again": (
        # planning/test_step_time.py
    ),
    "system/test_settings.py::test_a_run_continues_only_under_the_settings_it_began_with": (
        "jax_default_prng_impl",
        "jax_enable_x64",
    ),
    "lab/trained/test_score.py::test_scoring_the_own_test_file_reproduces_result_and_answers": ("text",),
    "lab/trained/test_score.py::test_inputs_without_answers_have_answers_but_no_metrics": ("pairs", "sentences"),
    "lab/trained/test_score_refusals.py::test_lines_with_one_empty_side_are_skipped_with_a_note": (
        "pairs",
        "sentences",
    ),
    "lab/trained/test_score.py::test_recordings_and_images_without_labels_are_answered": (),  # images of the next one
    "lab/trained/test_score_refusals.py::test_recordings_of_another_length_are_named": (),  # what_has_another_size
    "lab/trained/test_score_refusals.py::test_unscorable_lines_are_named_and_exit_with_3": (
        "empty",
        "another kind",
        "too long",
        "a half",
        "a class never seen",
        "a class before a tab",
        "a long sentence",
        "no sentences",
        "no text",
        "a strange text",
        "no picture",
        "a table's class",
        "a table's path",
    ),
    "cli/test_streams.py::test_an_unwritable_standard_output_is_reported_in_one_line": (
        *("--version", ">&--the stream is closed-list-", ">/dev/full-No space left on device-list-"),
    ),
    "cli/test_streams.py::test_an_unwritable_standard_error_changes_nothing_else": ("<&- 2>&-",),
    "cli/test_options.py::test_every_documented_command_can_be_planned": (
        "bert.py task=sentences task.masked=0 task.train=a.txt",
        "cora.py",
        "dates.py model.width=96 train.seeds=5",
        "detr.py task=boxes task.train=FOLDER",
        "g2p.py task=parallel task.train=a.tsv task.valid=b.tsv task.test=c.tsv",
        "long_range.py task=listops",
        "published_layers.py",
        "recall.py model.layers=4 model.mechanism=gated-delta*3+softmax model.attention.gate=channel",
        "sagan.py",
        "scan.py task.split=simple",
        "seq2seq_story.py",
        "shakespeare.py task.units=bpe task.units.size=1000",
    ),
    "cli/test_options.py::test_every_documented_match_is_found": ("activations.py",),
    # Expensive tests of a property that a cheaper test, or a cheaper case, checks too.
    "models/test_patterns.py::test_encoders_and_encoder_decoders_have_patterns_too": (),  # test_latent_attention
    "models/test_seq2seq.py::test_decoding_equals_teacher_forcing_and_padding_and_later_symbols_have_no_effect": (
        "last",
    ),
    "models/test_sagan.py::test_attention_maps_of_the_generator_are_its_weights": ("softmax",),
    "lab/trained/test_snapshot.py::test_detection_maps_of_queries_and_positions": ("0.0",),
    "lab/execution/test_artifacts.py::test_a_failure_to_draw_is_noted_and_the_result_is_complete": ("snapshots",),
    "lab/execution/test_workers.py::test_a_killed_process_is_reported_and_the_others_continue": (),  # faults: kill
    "lab/execution/test_workers.py::test_a_signal_reaches_the_workers_which_save": (
        # every_stop_signal_is_passed_on_to_the_workers, and training/test_loop: a_signal_in_the_last_dispatch
    ),
    "lab/test_preview.py::test_a_preview_keeps_real_runs_of_other_variants": (),  # a_real_run_replaces_a_preview
    "lab/test_changed_runs.py::test_a_broken_file_is_refused_and_a_fresh_run_recovers_it": ("result",),
    "system/test_settings.py::test_variables_that_cannot_work_are_one_line": (
        "JAX_PLATFORMS=nonsense: jax finds no such device (",
    ),
    "system/test_settings.py::test_a_page_and_a_table_of_runs_under_different_settings_say_so": (),  # mixed
    "training/test_optimiser.py::test_decay_all_applies_to_every_parameter": (),  # weight_decay_applies
    "mechanisms/test_reformer.py::test_heads_with_uneven_buckets_are_independent": (),  # test_contract_forms.py: vmap
    "mechanisms/test_linear.py::test_many_features_are_computed_for_some_rows_at_a_time": (),  # all_forms
    "mechanisms/test_sparse.py::test_keys_are_not_gathered_for_other_positions": (),  # gathering_past_keys
    "mechanisms/test_softcap.py::test_a_far_cap_is_no_cap_and_a_near_one_is_seen": (
        "Softmax(score=scaled_dot, block=None, length=512, sink=none, softcap=None)",
    ),
    "ops/test_blockwise.py::test_blockwise_equals_all_pairs": (
        *("keys-13-13-4", "segments-13-13-4", "causal-5-17-4", "hole-17-5-3"),
    ),
    "ops/test_entropy.py::test_gradients_agree_with_finite_differences": ("10 at once",),
    "ops/test_listed.py::test_reachable_follows_from_the_edges": ("twice",),
    "decoding/test_base.py::test_a_batch_is_decoded_each_example_as_alone_and_its_scores_are_log_probabilities": (
        "Beam(size=5, penalty=1.0, best=1)",
    ),
    "modules/test_grouped.py::test_it_is_plain_attention_with_keys_and_values_repeated": ("softmax-2", "ssd-2"),
    "functional/test_functional.py::test_padding_and_segments_are_those_of_single_sequences": ("gated-delta",),
    "functional/test_functional.py::test_it_is_a_loop_over_examples_and_heads_and_steps_with_a_cache_are_the_whole": (
        "softmax",
        "retention",
    ),
    "lab/trained/test_sample.py::test_text_is_continued_block_by_block": (),  # tasks/text/test_text.py
    "lab/test_launch.py::test_the_test_uses_the_decoder_and_the_mean_model": (),  # training/test_averaging.py
    "lab/test_launch.py::test_a_run_with_patience_is_tested_by_the_best_model_of_each_seed": (),  # test_stopping.py
    "lab/runs/test_answer_table.py::test_unwritable_answers_do_not_lose_the_result": (),  # test_a_failure_to_draw
    "models/test_transformer.py::test_two_layers_overfit_eight_sequences_and_greedy_decoding_is_the_argmax_of_teacher"
    "_forcing": (),  # models/test_language.py
}


def add_marks(items: list[pytest.Item]) -> set[str]:
    """Marks as slow the cases that the list excludes from the default run.

    Returns:
        The listed tests of which no case runs by default, although the list names some.
    """
    found: dict[str, bool] = {}
    for item in items:
        name = item.nodeid.split("[")[0].removeprefix("tests/")
        kept = DEFAULT.get(name, DEFAULT.get(name.split("::")[0]))
        if kept is None:
            continue
        call = getattr(item, "callspec", None)
        if kept and call is None:  # a test without parameters
            continue
        values = () if call is None else call.params.values()
        ids = {str(value) for value in values if isinstance(value, str | int | float)}
        default = bool({*ids, getattr(call, "id", "")} & {*kept})
        if not default:
            item.add_marker(pytest.mark.slow)
        found[name] = found.get(name, not kept) or default
    return {name for name, default in found.items() if not default}
