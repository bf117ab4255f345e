// A review and what an op does to it: the browser's half of the ledger's contract, pure.
// An op becomes changes `{field, from, to}`; fields are "outcome", "first_error", "status", "spans/<id>",
// "step_labels/<i>", "notes/<run|i>", "better_actions/<i>". Undo puts the `from` values back.

export function emptyReview(trajectoryId, reviewer) {
  return { trajectory_id: trajectoryId, reviewer, rev: 0, status: "unreviewed", outcome: null, spans: [], step_labels: {}, first_error: null, notes: {}, better_actions: {}, updated_utc: null };
}

/** The value of an addressed field, null where nothing is set. */
export function fieldValue(review, field) {
  const [group, key] = splitField(field);
  if (key === null) return review[group] ?? null;
  if (group === "spans") {
    const span = review.spans.find((item) => item.span_id === key);
    return span ? { start_s: span.start_s, end_s: span.end_s, reason: span.reason ?? "" } : null;
  }
  return review[group][key] ?? null;
}

function splitField(field) {
  const slash = field.indexOf("/");
  return slash < 0 ? [field, null] : [field.slice(0, slash), field.slice(slash + 1)];
}

function withField(review, field, value) {
  const [group, key] = splitField(field);
  if (key === null) return { ...review, [group]: value };
  if (group === "spans") {
    const others = review.spans.filter((span) => span.span_id !== key);
    const spans = value ? [...others, { span_id: key, start_s: value.start_s, end_s: value.end_s, reason: value.reason ?? "" }] : others;
    return { ...review, spans: spans.sort((a, b) => a.start_s - b.start_s || (a.span_id < b.span_id ? -1 : 1)) };
  }
  const group_ = { ...review[group] };
  if (value === null) delete group_[key];
  else group_[key] = value;
  return { ...review, [group]: group_ };
}

/** The review after `changes`. */
export const applyChanges = (review, changes) => changes.reduce((state, change) => withField(state, change.field, change.to), review);

export const reversed = (changes) => changes.map(({ field, from, to }) => ({ field, from: to, to: from })).reverse();

const same = (a, b) => JSON.stringify(a ?? null) === JSON.stringify(b ?? null);

/** The fields an op writes, as [field, value] pairs. `known` gives judgements (accept) and the changes of past ops (undo). */
function writes(op, review, known) {
  switch (op.type) {
    case "set_outcome": return [["outcome", op.value]];
    case "put_span": return [[`spans/${op.span_id}`, { start_s: op.start_s, end_s: op.end_s, reason: op.reason ?? "" }]];
    case "delete_span": return [[`spans/${op.span_id}`, null]];
    case "label_step": return [[`step_labels/${op.step_index}`, op.label === null ? null : { label: op.label, reason: op.reason ?? "" }]];
    case "set_first_error": return op.step_index === null
      ? [["first_error", null]]
      : [["first_error", { step_index: op.step_index, reason: op.reason ?? "" }], [`step_labels/${op.step_index}`, { label: "-", reason: op.reason ?? "" }]];
    case "set_note": return [[`notes/${op.step_index ?? "run"}`, op.text || null]];
    case "set_better_action": return [[`better_actions/${op.step_index}`, op.action]];
    case "accept": return acceptWrites(known.judgements?.find((judgement) => judgement.id === op.judgement_id));
    case "undo": return reversed(known.changesOf?.(op.undoes) ?? []).map(({ field, to }) => [field, to]);
    case "submit": return [["status", "submitted"]];
    case "reopen": return [["status", "in_progress"]];
    default: return [];
  }
}

function acceptWrites(judgement) {
  if (!judgement) return [];
  return [
    ...(judgement.outcome ? [["outcome", judgement.outcome]] : []),
    ...(judgement.spans ?? []).map((span, k) => [`spans/${judgement.id}.${k}`, { start_s: span.start_s, end_s: span.end_s, reason: span.reason ?? "" }]),
    ...(judgement.step_labels ?? []).map((item) => [`step_labels/${item.step_index}`, { label: item.label, reason: item.reason ?? "" }]),
  ];
}

/** What `op` changes in `review`: only fields that end up different. */
export function changesOf(op, review, known = {}) {
  const pairs = writes(op, review, known);
  if (review.status === "unreviewed" && op.type !== "submit" && op.type !== "undo") pairs.push(["status", "in_progress"]);
  return pairs.map(([field, to]) => ({ field, from: fieldValue(review, field), to: to ?? null })).filter(({ from, to }) => !same(from, to));
}

/** What a step shows: its label, whether a person gave it, or `after_error` by the first error before it. */
export function stepState(review, index) {
  const given = review.step_labels[index];
  const firstError = review.first_error;
  const isFirstError = firstError?.step_index === index;
  return {
    label: given?.label ?? null,
    isFirstError,
    afterError: !given && firstError != null && index > firstError.step_index,
    reason: (isFirstError && firstError.reason) || given?.reason || "",
    note: review.notes[index] ?? "",
  };
}
