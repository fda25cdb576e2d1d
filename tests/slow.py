"""Which cases of the largest grids run by default. All others are slow: `-m slow` runs them, `-m ""` runs all.

A test that is not named here runs whole, unless it is marked itself. `tests/conftest.py` applies the list.
"""

import pytest

# One mechanism of each kind: pairwise, a sum of features, over all tokens at once with nothing learned and with learned
# projections, and a wrapper around a gated memory with inputs per token and learned arrays.
KINDS = ("softmax", "linear", "nystrom", "linformer", "short-convolution")

POSITIONS = ("sinusoidal", "shaw", "rotary")  # added to what is read, to the keys, and turning queries and keys

# By file, or by file and test: the ids, or values of a parameter, that run by default. Where there are none the whole
# test is slow, and the comment says which test keeps the property.
DEFAULT: dict[str, tuple[str, ...]] = {
    # Every mechanism in every form.
    "mechanisms/test_contract_absence.py": KINDS,
    "mechanisms/test_contract_drawn.py": KINDS,
    "mechanisms/test_contract_forms.py": KINDS,
    "mechanisms/test_contract_gradients.py": KINDS,
    "mechanisms/test_contract_numbers.py": KINDS,
    "mechanisms/test_edges.py::test_a_list_of_edges_is_their_table_with_gradients": ("softmax", "linear", "gat"),
    "mechanisms/test_edges.py::test_padding_of_a_list_weighs_nothing": ("softmax", "linear", "gat"),
    "mechanisms/test_inputs.py::test_of_no_queries_there_is_no_answer_and_no_keys_are_all_unseen": KINDS,
    "mechanisms/test_inputs.py::test_whole_numbers_are_mixed_by_every_kind": ("softmax", "linear", "delta"),
    "mechanisms/test_linear.py::test_values_and_gradients_are_finite_at_the_extremes": ("exp", "relu"),
    "mechanisms/test_short_convolution.py::test_it_is_the_mechanism_of_convolved_queries_and_keys_with_padding_and"
    "_packing": ("None-softmax", "2-gated-delta"),
    "mechanisms/test_sinkhorn.py::test_it_is_the_definition_written_out": ("12-12", "5-11"),
    "mechanisms/test_sparse.py::test_it_is_softmax_over_its_pattern": ("window", "bigbird"),
    "mechanisms/test_sparse.py::test_packed_and_padded_tokens_keep_their_own_pattern": ("window", "bigbird"),
    "mechanisms/test_sparse.py::test_the_efficient_form_is_the_definition_for_other_lengths_too": ("window", "bigbird"),
    "mechanisms/test_synthesizer.py::test_it_is_the_formula_under_any_mask": ("Causal()-dense", "Full()-random"),
    "bench/test_calls.py::test_every_mechanism_can_be_put_on_the_bench": KINDS,
    "mechanisms/test_inputs.py::test_positions_that_were_given_are_counted_on_from": ("softmax",),
    "mechanisms/test_linear.py::test_a_kernel_of_pairs_is_the_product_of_their_features": ("narrow-True",),
    "mechanisms/test_linear.py::test_many_features_are_made_for_some_rows_at_a_time": (
        "Linear(feature=Taylor(), normalise=True, block=64)",
    ),
    "mechanisms/test_linear.py::test_rows_beyond_the_length_are_answered_by_all_blocks_where_positions_are_within": (
        "mechanism0",
    ),
    "mechanisms/test_maps.py::test_the_map_is_the_mean_over_the_channels": ("3",),
    "mechanisms/test_reformer.py::test_rounds_of_sorted_buckets_give_what_all_pairs_give": ("causal", "full"),
    "mechanisms/test_sparse.py::test_keys_fetched_around_a_centre_are_those_of_all_pairs": ("scaled_dot",),
    "analysis/test_cost.py::test_what_is_counted_grows_as_a_mechanism_declares": (*KINDS, "taylor"),
    "models/test_associative_memory.py::test_every_mechanism_that_decodes_can_be_asked_one_question_or_many": KINDS,
    "models/test_classifier.py::test_any_mechanism_that_sees_both_sides_sorts_by_heart": ("softmax", "linear"),
    "models/test_classifier.py::test_a_token_reads_every_word_in_one_layer": ("softmax", "bigbird"),
    "models/test_language.py::test_two_layers_overfit_eight_sequences_and_greedy_decoding_is_the_argmax_of_the"
    "_parallel_form": ("softmax", "ssd"),
    "models/test_sagan.py::test_where_the_generator_looks_is_what_it_mixes_by": ("softmax",),
    "models/test_transformer.py::test_decoding_step_by_step_equals_teacher_forcing_and_padding_changes_nothing": KINDS,
    "modules/test_grouped.py::test_several_tokens_at_a_time_and_one_by_one_are_the_whole": KINDS,
    "functional/test_functional.py::test_it_is_a_loop_over_examples_and_heads_and_steps_with_a_cache_are_the_whole": (
        "softmax",
        "linear",
        "retention",
        "delta",
    ),
    "functional/test_functional.py::test_under_any_mask_it_is_a_loop_over_examples_and_heads": ("softmax", "nystrom"),
    "functional/test_functional.py::test_softmax_is_that_of_jax": ("4-2-softmax",),
    # Every model, position and size.
    "models/test_classifier.py::test_how_much_padding_there_is_says_nothing": POSITIONS,
    "models/test_scale_embeddings.py::test_unscaled_tables_start_small": ("bahdanau",),
    "models/test_seq2seq.py::test_decoding_step_by_step_equals_teacher_forcing_and_no_padding_or_later_symbol_shows": (
        "last",
        "bahdanau",
        "luong",
    ),
    "models/test_seq2seq.py::test_it_overfits_eight_sequences_and_greedy_decoding_is_the_argmax_of_teacher_forcing": (
        "bahdanau",
    ),
    "models/test_transformer.py::test_computing_layers_again_in_the_backward_pass_changes_nothing": ("unrolled",),
    "models/test_transformer.py::test_every_position_serves_in_every_precision": POSITIONS,
    "models/test_transformer.py::test_so_it_does_with_positions_that_learn_or_know_which_side_they_are_on": (
        "learned",
        "shaw",
    ),
    "models/test_unpadded.py::test_no_padding_is_all_kept": ("attention", "gru"),
    "modules/test_rotary_features.py::test_every_form_is_the_equation": ("plain-rotary", "elu+1-rotary-2d"),
    "modules/test_rotary_features.py::test_gradients_are_those_of_finite_differences": ("elu+1",),
    "modules/test_rotary_features.py::test_a_module_turns_them_in_each_of_its_ways": (
        "1-Rotary2D(columns=3, base=10000.0)",
    ),
    "decoding/test_base.py::test_a_network_is_searched_as_it_is_forced": (
        "Linear(feature=EluPlusOne(), normalise=True, block=64)",
    ),
    "ops/test_delta.py::test_gradients_through_gates_and_strengths_agree_with_finite_differences": ("1",),
    "tasks/base/test_token_prediction.py::test_the_loss_is_the_cross_entropy_of_the_logits": (
        "language",
        "convolution",
    ),
    "tasks/text/test_pairing.py::test_there_is_room_for_the_longest_source_and_its_marks": (
        "model1-none-4",
        "model1-both-2",
    ),
    "training/test_loop.py::test_interrupted_and_resumed_gives_the_same_bits_and_the_same_record": ("toy",),
    "training/test_optimiser.py::test_weight_decay_reaches_matrices_alone": (
        "layers",
        "short-convolution",
        "positions",
        "gcn",
    ),
    "modules/test_position.py::test_rows_one_place_earlier_are_told_what_the_rows_before_them_were": POSITIONS,
    "modules/test_position.py::test_token_by_token_equals_the_whole_and_the_order_tells": POSITIONS,
    "modules/test_recurrent.py::test_two_layers_of_both_ways_are_their_formula_wherever_padding_stands": ("lstm",),
    "models/test_encoder.py::test_how_much_padding_there_is_says_nothing": POSITIONS,
    "models/test_language.py::test_token_by_token_equals_the_whole_and_padding_changes_nothing": (
        "Sinusoidal()",
        "Rotary2D(columns=2, base=10000.0)",
    ),
    "models/test_scale_embeddings.py::test_unscaled_tables_are_read_as_they_are": ("bahdanau", "luong"),
    "models/test_seq2seq.py::test_padding_reaches_no_gradient_and_all_parameters_have_one": ("bahdanau",),
    "models/test_transformer.py::test_what_is_shared_starts_alike_beside_what_one_of_them_learns_besides": (
        "gated-linear",
        "short-convolution",
    ),
    "models/test_transformer.py::test_what_positions_learn_gets_a_gradient": ("Shaw(clip=16)",),
    "modules/test_grouped.py::test_positions_are_those_of_query_heads": ("t5", "rotary"),
    "modules/test_recurrent.py::test_reading_step_by_step_is_reading_at_once_and_sees_no_padding": (
        "additive",
        "softmax",
        "linear",
    ),
    "modules/test_rotary_features.py::test_distances_alone_are_told": ("elu+1",),
    "modules/test_spectral.py::test_it_is_the_largest_singular_value": (
        "random-1",
        "wide-1e-12",
        "close-1000000000000.0",
    ),
    "ops/test_blockwise.py::test_dtypes_keep_theirs_and_great_scores_stay_finite": ("bfloat16",),
    "ops/test_blockwise.py::test_every_score_and_what_it_learned": ("scaled_dot", "additive"),
    "ops/test_blockwise.py::test_no_array_of_all_pairs_is_ever_made": ("causal",),
    "ops/test_conv.py::test_along_a_line_it_is_the_sum_written_out": ("2-2", "3-1"),
    "ops/test_conv.py::test_over_an_image_it_is_the_sum_written_out": ("(3, 3)-2", "(2, 3)-1"),
    "ops/test_decay.py::test_a_gate_that_shuts_leaves_those_after_it_exact": ("64-4", "32-1"),
    "ops/test_decay.py::test_chunks_of_any_size_are_the_recurrence": ("13-5-4", "37-16-1"),
    "ops/test_decay.py::test_gates_that_overflow_as_exponentials_of_sums_give_finite_values_and_gradients": (
        "1--10000.0",
        "4--100.0",
    ),
    "ops/test_delta.py::test_chunks_of_any_size_are_the_recurrence": ("13-5-4", "37-16-1"),
    "models/test_gat.py::test_a_node_hears_from_two_steps_away_and_no_further": ("gat",),
    "ops/test_entropy.py::test_blocks_of_any_size_answer_what_all_scores_at_once_do": ("10 at once-0.1-True",),
    "ops/test_entropy.py::test_gradients_are_those_of_all_scores_at_once": ("10 at once-0.1-True",),
    "ops/test_entropy.py::test_lanes_are_each_their_own": ("10 at once",),
    "ops/test_entropy.py::test_the_loss_is_pytorchs": ("10 at once-0.1",),
    "data/synthetic/test_pathfinder.py::test_short_curves_are_told_by_what_lies_between_the_dots_and_long_ones_less": (
        "12-2-0-0.95-1",
    ),
    "data/synthetic/test_pathfinder.py::test_nothing_linear_in_the_pixels_tells_the_answer": (),  # no_simple_measure
    "data/synthetic/test_pathfinder.py::test_where_the_dots_lie_does_not_tell_the_answer": (),  # no_simple_measure
    "data/text/test_multi30k.py::test_what_a_person_types_becomes_what_the_tokenised_text_holds": ("de",),
    "lab/statistics/test_coverage.py::test_equal_variants_are_rarely_told_apart": ("t3-3",),
    # Published data as a whole.
    "data/io/test_sources.py::test_the_published_files_are_verified": ("cmudict", "fsdd"),
    "data/text/test_scan.py::test_the_published_splits": ("simple",),
    "tasks/text/test_g2p.py::test_the_published_dictionary": (),  # data/text/test_cmudict.py
    "tasks/text/test_translation.py::test_captions_as_published": (),  # data/text/test_multi30k.py
    # Everything that trains a model of its own, or a process.
    "test_notebooks.py::test_a_notebook_runs_and_draws_what_it_shows": ("attention_by_hand",),
    "lab/results/test_ties.py::test_rates_with_one_score_are_told_apart_by_the_loss": (),  # records, loss_of_a_lane
    "lab/test_classification.py::test_two_phases_are_one_run": (),  # models/test_bert.py, tasks/text/test_sentences.py
    "lab/trained/test_score.py::test_the_command_prints_what_the_table_does_and_keeps_the_answers": ("pairs",),
    "faults/test_faults.py::test_a_few_cases_hold": (
        *("kill", "writes", "flips", "resume", "sigterm", "numbers", "configurations", "folders", "fuzz", "hostile"),
        "endurance",
    ),  # trainers: test_launch, storage/test_lock; surroundings: cli/test_main
    "lab/results/test_ties.py::test_pairs_of_single_words_choose_the_rate_that_learns": (),  # test_launch
    "lab/runs/test_answer_table.py::test_a_run_keeps_the_answers_of_every_seed_at_the_chosen_rate_to_its_test": (
        "rates1",
    ),
    "lab/study/test_user_code_runs.py::test_it_is_asked_with_the_file_that_defines_it": ("sample",),
    "lab/trained/test_snapshot.py::test_detection_maps_of_queries_and_positions": ("0.0",),
    "lab/trained/test_snapshot.py::test_class_token_is_the_first_row": (
        "words-token",
        "patches-mean",
    ),
    "lab/execution/test_variant.py::test_files_removed_during_training": ("all", "metrics.jsonl"),
    "lab/study/test_sibling_imports.py::test_two_processes_and_a_trained_run_know_it": (),  # test_workers, its others
    "lab/execution/test_workers.py::test_workers_know_a_registry_entry_of_a_file_whose_class_is_attnlab_s": (),  # next
    "lab/test_classification.py::test_image_generation_has_maps_if_the_model_has_attention": (),  # models/test_sagan.py
    "lab/execution/test_artifacts.py::test_a_mechanism_with_extras_as_wide_as_the_values_trains_and_has_maps": (),
    "lab/trained/test_inspect.py::test_detection_maps_have_positions_and_queries": (),  # test_snapshot
    "lab/test_problems.py::test_a_study_of_this_task_runs_and_can_be_sampled": ("associations",),
    "lab/trained/test_score.py::test_scoring_the_own_test_file_reproduces_result_and_answers": (
        "pairs",
        "sentences",
        "text",
        "images",
        "nodes",
    ),
    "lab/trained/test_score.py::test_inputs_without_answers_have_answers_but_no_metrics": ("pairs", "sentences"),
    "lab/trained/test_score.py::test_lines_with_one_empty_side_are_skipped_and_said": ("pairs", "sentences"),
    "lab/trained/test_score.py::test_recordings_and_images_without_labels_are_answered": (),  # images of the next one
    "lab/trained/test_score.py::test_recordings_of_another_length_are_named": (),  # what_has_another_size
    "lab/trained/test_score.py::test_what_cannot_be_scored_is_named_with_its_line_and_leaves_three": (
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
    "cli/test_options.py::test_every_documented_match_is_found": (
        "activations.py",
        "softmax_vs_linear_recall.py match=state",
    ),
}


def add_marks(items: list[pytest.Item]) -> set[str]:
    """Mark as slow what the list leaves out of the default run.

    Returns:
        The tests of the list of which no case runs by default, although the list names some.
    """
    found: dict[str, bool] = {}
    for item in items:
        name = item.nodeid.split("[")[0].removeprefix("tests/")
        kept = DEFAULT.get(name, DEFAULT.get(name.split("::")[0]))
        if kept is None:
            continue
        call = getattr(item, "callspec", None)
        if kept and call is None:  # a test of the file that has no grid
            continue
        values = () if call is None else call.params.values()
        told = {str(value) for value in values if isinstance(value, str | int | float)}
        default = bool({*told, getattr(call, "id", "")} & {*kept})
        if not default:
            item.add_marker(pytest.mark.slow)
        found[name] = found.get(name, not kept) or default
    return {name for name, default in found.items() if not default}
