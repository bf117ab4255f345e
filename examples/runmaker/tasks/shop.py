"""Tasks and runs in the shop, some of them on a phone screen."""

from __future__ import annotations

from ..actions import DONE, WAIT, Write, click, scroll
from ..script import PHONE_PX, Script, Step, Task, dead

CODE = "SPRING10"


def product(name: str) -> str:
    """A product in the list."""
    return f'[data-product="{name}"]'


def color(name: str) -> str:
    """A colour of the open product."""
    return f'[data-color="{name}"]'


LAMP = Task(
    "shop-desk-lamp",
    "shop",
    "Put one Arc desk lamp in the colour sage into the cart.",
    {"the cart holds exactly that lamp": lambda s: s["cart"] == [{"id": "arc-desk", "color": "sage", "qty": 1}]},
)
COUPON = Task(
    "shop-discount-code",
    "shop",
    f"The cart already holds two products. Redeem the discount code {CODE}, then go to the checkout.",
    {
        "the code is redeemed": lambda s: s["coupon"] == CODE,
        "the checkout is open": lambda s: s["view"] == "checkout",
    },
    fragment="#cart",
)
CHEAP = Task(
    "shop-phone-under-40",
    "shop",
    "Show only the products under 40, with the cheapest first.",
    {
        "only products under 40 are shown": lambda s: s["price"] == "under 40",
        "the cheapest comes first": lambda s: s["shown"] == ["mug", "candle", "pot", "cushion"],
    },
    size_px=PHONE_PX,
)
CUSHIONS = Task(
    "shop-phone-cushions",
    "shop",
    "Order two Linen cushions in blue, delivered to the pickup point.",
    {
        "two blue Linen cushions are ordered to the pickup point": lambda s: (
            s["ordered"] == {"delivery": "pickup", "lines": [{"id": "cushion", "color": "blue", "qty": 2}]}
        )
    },
    fragment="#cookies",
    size_px=PHONE_PX,
)
TASKS = [LAMP, COUPON, CHEAP, CUSHIONS]

SCRIPTS = [
    Script(
        "demo-agent-c",
        LAMP,
        "correct",
        [
            Step(
                "The desk lamp is not among the first products. I scroll down.",
                scroll("#view", -8),
                check=("the list scrolled", lambda b, a: a["scroll_px"] > b["scroll_px"]),
            ),
            Step(
                "There is the Arc desk lamp. I open it.",
                click(product("arc-desk")),
                check=("the desk lamp is open", lambda b, a: a["product"] == "arc-desk"),
            ),
            Step(
                "Clay is selected. I choose sage.",
                click(color("sage")),
                check=("sage is chosen", lambda b, a: a["color"] == "sage"),
            ),
            Step("Colour and number are right. I add it to the cart.", click("#add")),
            Step("I look into the cart to check.", click("#cart-open")),
            Step("The cart holds one Arc desk lamp in sage. The task is complete.", DONE),
        ],
    ),
    Script(
        "demo-agent-a",
        LAMP,
        "wrong_element",
        [
            Step("I use the search.", click("#search")),
            Step(
                "I type the name of the lamp.",
                Write("arc"),
                check=("both lamps are found", lambda b, a: a["shown"] == ["arc-floor", "arc-desk"]),
            ),
            Step(
                "The Arc lamp is the first result. I open it.",
                click(product("arc-floor")),
                wrong="opens the Arc floor lamp instead of the Arc desk lamp",
                check=("the floor lamp is open", lambda b, a: a["product"] == "arc-floor"),
            ),
            Step("I choose the colour sage.", click(color("sage"))),
            Step(
                "I add the lamp to the cart.",
                click("#add"),
                wrong="puts the floor lamp into the cart",
                check=("the floor lamp is in the cart", lambda b, a: a["cart"][0]["id"] == "arc-floor"),
            ),
            Step("The shop confirms that the lamp is in the cart.", DONE),
        ],
        off_track=lambda s: s["product"] == "arc-floor",
    ),
    Script(
        "demo-agent-b",
        COUPON,
        "wrong_field",
        [
            Step("I open the cart.", click("#cart-open")),
            Step(
                "There is a field for the code beside the products. I click into it.",
                click("#gift"),
                wrong="clicks into the gift note instead of the discount code",
                check=("the gift note is active", lambda b, a: a["focus"] == "gift"),
            ),
            Step(
                "I type the code.",
                Write(CODE),
                wrong="types the code into the gift note",
                check=(
                    "the code is in the gift note, the discount field is empty",
                    lambda b, a: a["gift"] == CODE and a["coupon_text"] == "",
                ),
            ),
            Step(
                "The code is entered. I go to the checkout.",
                click("#checkout"),
                check=(
                    "the checkout opens without a discount",
                    lambda b, a: a["view"] == "checkout" and not a["coupon"],
                ),
            ),
            Step("The code is redeemed and the checkout is open.", DONE),
        ],
        off_track=lambda s: s["focus"] == "gift" or bool(s["gift"]) or (s["view"] == "checkout" and not s["coupon"]),
    ),
    Script(
        "demo-agent-b",
        CHEAP,
        "recovered",
        [
            Step(
                "I begin with the order: cheapest first.",
                click('[data-sort="cheapest"]'),
                check=("the order changed", lambda b, a: a["sort"] == "cheapest"),
            ),
            Step(
                "Now the price filter with 40.",
                click('[data-price="40 to 80"]'),
                wrong="chooses 40 to 80 instead of under 40",
                check=("40 to 80 is chosen", lambda b, a: a["price"] == "40 to 80"),
            ),
            Step("I wait for the list to settle.", WAIT),
            Step(
                "The list starts at 46, which is too much. That was the wrong filter. I choose Under 40.",
                click('[data-price="under 40"]'),
                recovers=True,
                check=("under 40 is chosen", lambda b, a: a["price"] == "under 40"),
            ),
            Step("Four products from 14 to 32 are shown, cheapest first.", DONE),
        ],
        off_track=lambda s: s["price"] == "40 to 80",
    ),
    Script(
        "demo-agent-c",
        CUSHIONS,
        "loop",
        [
            dead("I see the Linen cushion in the second row. I open it.", click(product("cushion"))),
            dead("The product page has not opened. I click the Linen cushion.", click(product("cushion"))),
            dead("Nothing changed. I click the Linen cushion again.", click(product("cushion"))),
            dead("The page may be slow. I click the Linen cushion once more.", click(product("cushion"))),
            Step("The order has been prepared.", DONE),
        ],
    ),
    Script(
        "demo-agent-a",
        CUSHIONS,
        "stopped_early",
        [
            Step(
                "A cookie notice covers the shop. I allow only what is needed.",
                click("#cookie-needed"),
                check=("the notice is gone", lambda b, a: a["cookies"] != "ask"),
            ),
            Step("I look through the products.", scroll("#view", -6)),
            Step("I look at the rest of the list.", scroll("#view", -6)),
            Step("The Linen cushion was near the top. I scroll back.", scroll("#view", 12)),
            Step(
                "I open the Linen cushion.",
                click(product("cushion")),
                check=("the cushion is open", lambda b, a: a["product"] == "cushion"),
            ),
            Step(
                "I choose blue.",
                click(color("blue")),
                check=("blue is chosen", lambda b, a: a["color"] == "blue"),
            ),
            Step(
                "I need two pieces.",
                click('[data-qty="1"]'),
                check=("two pieces", lambda b, a: a["qty"] == 2),
            ),
            Step(
                "I add them to the cart.",
                click("#add"),
                check=("they are in the cart", lambda b, a: len(a["cart"]) == 1),
            ),
        ],
    ),
]
