"""First tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply the change."""
    op.create_table(
        "media",
        sa.Column("id", sa.String(length=24), nullable=False),
        sa.Column("kind", sa.String(length=10), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("original_path", sa.Text(), nullable=True),
        sa.Column("proxy_reason", sa.Text(), nullable=False),
        sa.Column("width_px", sa.Integer(), nullable=False),
        sa.Column("height_px", sa.Integer(), nullable=False),
        sa.Column("duration_s", sa.Float(), nullable=True),
        sa.Column("start_s", sa.Float(), nullable=False),
        sa.Column("clock", sa.JSON(), nullable=True),
        sa.CheckConstraint("kind in ('video', 'image')", name="media_kind"),
        sa.PrimaryKeyConstraint("id", name=op.f("media_pk")),
    )
    op.create_table(
        "trajectory",
        sa.Column("id", sa.String(length=16), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("content_hash", sa.String(length=64), nullable=False),
        sa.Column("format", sa.String(length=40), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("task", sa.Text(), nullable=False),
        sa.Column("agent", sa.Text(), nullable=False),
        sa.Column("step_count", sa.Integer(), nullable=False),
        sa.Column("duration_s", sa.Float(), nullable=True),
        sa.Column("score", sa.Float(), nullable=True),
        sa.Column("outcome", sa.String(length=12), nullable=True),
        sa.Column("problem_count", sa.Integer(), nullable=False),
        sa.Column("imported_utc", sa.String(length=32), nullable=False),
        sa.Column("media_id", sa.String(length=24), nullable=True),
        sa.Column("thumbnail_id", sa.String(length=24), nullable=True),
        sa.Column("document", sa.JSON(), nullable=False),
        sa.Column("problems", sa.JSON(), nullable=False),
        sa.CheckConstraint("outcome in ('correct', 'incorrect')", name="trajectory_outcome"),
        sa.ForeignKeyConstraint(["media_id"], ["media.id"], name=op.f("trajectory_media_id_fk")),
        sa.ForeignKeyConstraint(["thumbnail_id"], ["media.id"], name=op.f("trajectory_thumbnail_id_fk")),
        sa.PrimaryKeyConstraint("id", name=op.f("trajectory_pk")),
        sa.UniqueConstraint("source", name=op.f("trajectory_source_unique")),
    )
    op.create_index(op.f("trajectory_imported_utc"), "trajectory", ["imported_utc"])

    op.create_table(
        "alignment",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("trajectory_id", sa.String(length=16), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("created_utc", sa.String(length=32), nullable=False),
        sa.Column("document", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["trajectory_id"], ["trajectory.id"], name=op.f("alignment_trajectory_id_fk")),
        sa.PrimaryKeyConstraint("id", name=op.f("alignment_pk")),
        sa.UniqueConstraint("trajectory_id", "version", name=op.f("alignment_trajectory_id_version_unique")),
    )
    op.create_table(
        "job",
        sa.Column("id", sa.String(length=24), nullable=False),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("trajectory_id", sa.String(length=16), nullable=True),
        sa.Column("arguments", sa.JSON(), nullable=False),
        sa.Column("state", sa.String(length=12), nullable=False),
        sa.Column("done", sa.Integer(), nullable=False),
        sa.Column("total", sa.Integer(), nullable=True),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("result", sa.JSON(), nullable=True),
        sa.Column("created_utc", sa.String(length=32), nullable=False),
        sa.Column("updated_utc", sa.String(length=32), nullable=False),
        sa.CheckConstraint("state in ('queued', 'running', 'done', 'failed', 'cancelled')", name="job_state"),
        sa.ForeignKeyConstraint(["trajectory_id"], ["trajectory.id"], name=op.f("job_trajectory_id_fk")),
        sa.PrimaryKeyConstraint("id", name=op.f("job_pk")),
    )
    op.create_index(op.f("job_state"), "job", ["state"])

    op.create_table(
        "judgement",
        sa.Column("id", sa.String(length=24), nullable=False),
        sa.Column("trajectory_id", sa.String(length=16), nullable=False),
        sa.Column("judge", sa.String(length=40), nullable=False),
        sa.Column("fingerprint", sa.String(length=64), nullable=False),
        sa.Column("created_utc", sa.String(length=32), nullable=False),
        sa.Column("outcome", sa.String(length=12), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("document", sa.JSON(), nullable=False),
        sa.CheckConstraint("outcome in ('correct', 'incorrect')", name="judgement_outcome"),
        sa.ForeignKeyConstraint(["trajectory_id"], ["trajectory.id"], name=op.f("judgement_trajectory_id_fk")),
        sa.PrimaryKeyConstraint("id", name=op.f("judgement_pk")),
    )
    op.create_index("judgement_newest", "judgement", ["trajectory_id", "judge", "created_utc"])

    op.create_table(
        "override",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("op_id", sa.String(length=80), nullable=False),
        sa.Column("trajectory_id", sa.String(length=16), nullable=False),
        sa.Column("reviewer", sa.String(length=80), nullable=False),
        sa.Column("verified", sa.Boolean(), nullable=False),
        sa.Column("rev", sa.Integer(), nullable=False),
        sa.Column("type", sa.String(length=24), nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.Column("changes", sa.JSON(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("shown", sa.JSON(), nullable=False),
        sa.Column("undoes", sa.String(length=80), nullable=True),
        sa.Column("created_utc", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(["trajectory_id"], ["trajectory.id"], name=op.f("override_trajectory_id_fk")),
        sa.PrimaryKeyConstraint("id", name=op.f("override_pk")),
        sa.UniqueConstraint("op_id", name=op.f("override_op_id_unique")),
        sa.UniqueConstraint(
            "trajectory_id", "reviewer", "rev", name=op.f("override_trajectory_id_reviewer_rev_unique")
        ),
    )
    op.create_index("override_newest", "override", ["trajectory_id", "created_utc", "id"])
    op.create_index("override_undoing", "override", ["undoes"])

    op.create_table(
        "review",
        sa.Column("trajectory_id", sa.String(length=16), nullable=False),
        sa.Column("reviewer", sa.String(length=80), nullable=False),
        sa.Column("rev", sa.Integer(), nullable=False),
        sa.Column("status", sa.String(length=12), nullable=False),
        sa.Column("outcome", sa.String(length=12), nullable=True),
        sa.Column("updated_utc", sa.String(length=32), nullable=False),
        sa.Column("state", sa.JSON(), nullable=False),
        sa.CheckConstraint("outcome in ('correct', 'incorrect', 'unsure')", name="review_outcome"),
        sa.CheckConstraint("status in ('in_progress', 'submitted')", name="review_status"),
        sa.ForeignKeyConstraint(["trajectory_id"], ["trajectory.id"], name=op.f("review_trajectory_id_fk")),
        sa.PrimaryKeyConstraint("trajectory_id", "reviewer", name=op.f("review_pk")),
    )
    op.create_index("review_by_reviewer", "review", ["reviewer", "status"])


def downgrade() -> None:
    """Take the change back."""
    for table in ("review", "override", "judgement", "job", "alignment", "trajectory", "media"):
        op.drop_table(table)
